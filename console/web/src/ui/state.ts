import type { RunRow } from '../core/api';
import { word } from './app.svelte';

/** The state that a badge shows, of a run in a list or on its own. */
export function stateOf(r: Pick<RunRow, 'status' | 'waiting' | 'stop'> & { declined?: boolean }): string {
  if (r.status === 'stopped') return r.declined ? 'declined' : (r.stop ?? 'failed');
  if (r.status === 'waiting') return r.waiting?.[0] ?? 'waiting';
  return r.status;
}

export const limitName = (r: { limit?: string; stop?: string }) => (r.stop === 'limit' && r.limit ? word('limit', r.limit) : '');
