import type { Delta, Event } from './event';

/** An answer that is a problem (RFC 9457), or no answer: status 0. */
export class Problem extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

const tokenKey = 'ronda.token';

/** The token of this tab. It is kept for the tab's life only and goes nowhere but into the Authorization header. */
export const token = {
  get: (): string => sessionStorage.getItem(tokenKey) ?? '',
  set: (v: string): void => (v ? sessionStorage.setItem(tokenKey, v) : sessionStorage.removeItem(tokenKey)),
};

let denied: () => void = () => {};

/** onDenied is called when the server asks for a token. */
export function onDenied(f: () => void): void {
  denied = f;
}

function headers(more: Record<string, string>): Record<string, string> {
  const t = token.get();
  return t ? { ...more, Authorization: `Bearer ${t}` } : more;
}

async function send(path: string, init: RequestInit): Promise<Response> {
  let res: Response;
  try {
    res = await fetch(path, { credentials: 'omit', cache: 'no-store', ...init });
  } catch (err) {
    if (init.signal?.aborted) throw err;
    throw new Problem(0, 'no connection');
  }
  if (res.ok) return res;
  if (res.status === 401) denied();
  let detail = res.statusText;
  try {
    const p = await res.json();
    detail = [p.detail, ...(p.errors ?? []).map((e: any) => [e.location, e.message].filter(Boolean).join(' '))].filter(Boolean).join(': ') || detail;
  } catch {
    // no problem document: the status text has to do
  }
  throw new Problem(res.status, detail);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await send(path, { headers: headers({ Accept: 'application/json' }), signal })).json();
}

export async function raw(path: string, signal?: AbortSignal): Promise<Response> {
  return send(path, { headers: headers({}), signal });
}

export async function post<T>(path: string, body: unknown, more: Record<string, string> = {}): Promise<T> {
  return (await send(path, { method: 'POST', headers: headers({ 'Content-Type': 'application/json', Accept: 'application/json', ...more }), body: JSON.stringify(body) })).json();
}

export interface RunRow {
  run: string; session?: string; parent?: string; agent: string; model: string; scripted?: boolean; status: string; waiting?: string[];
  stop?: string; limit?: string; created: string; updated: string; title?: string;
  summary?: { rounds?: number; model_calls?: number; tool_calls?: number; tokens?: number; cost?: number };
}

export interface Pending {
  id?: string; run: string; call?: string; kind: 'approval' | 'resolution' | 'extension'; agent?: string; path?: string[]; tool?: string; args?: any;
  digest?: string; destination?: string; reason?: string; thought?: string; expires?: string; schema?: any;
}

export interface RunView extends RunRow {
  declined?: boolean; message?: string; missing?: string[]; unknown?: string[]; not_run?: string[]; answer: string; last_event: number; whose?: string;
  counts: { rounds: number; model_calls: number; model_attempts: number; tool_calls: number; tool_attempts: number };
  usage: { input: number; cache_read: number; cache_write: number; output: number; reasoning: number; estimated?: number; cost_usd: number };
  limits: { limit: string; used: number; of: number; unit: string }[];
  facts: Record<string, unknown>;
  pending: Pending[];
}

export interface Agent { name: string; about?: string; model?: string; scripted?: boolean }
export interface Me { name: string; role: 'viewer' | 'operator' | 'approver' | 'admin' }

export type Line = 'connecting' | 'open' | 'lost' | 'back' | 'ended';

/** Whoever follows a run. batch may hold many events: whoever shows them draws once for all. */
export interface Follower {
  events(batch: Event[]): void;
  delta(d: Delta): void;
  line(state: Line): void;
}

/**
 * Follows the events of a run from after on, until the run stops or signal ends it. A connection that is lost is made again, after the last
 * event that was seen: nothing is lost and nothing comes twice. What is there already comes in pages, which is quicker than a stream.
 */
export async function follow(run: string, after: number, to: Follower, signal: AbortSignal, page = 2000): Promise<void> {
  let last = after;
  let stopped = false;
  let failures = 0;
  const path = `/v1/runs/${encodeURIComponent(run)}/events`;
  to.line('connecting');
  while (!signal.aborted && !stopped) {
    try {
      for (;;) {
        const got = await get<{ events: Event[]; last: number }>(`${path}?after=${last}&limit=${page}`, signal);
        if (got.events.length) {
          to.events(got.events);
          last = got.last;
          stopped = got.events[got.events.length - 1]!.k === 'RunStopped';
        }
        if (got.events.length < page) break;
      }
      if (stopped) break;
      const res = await send(path, { headers: headers({ Accept: 'text/event-stream', 'Last-Event-ID': String(last) }), signal });
      to.line(failures > 0 ? 'back' : 'open');
      failures = 0;
      await readStream(res.body!, (m) => {
        if (m.event === 'delta') {
          const [seq, offset] = m.id.split('.').map(Number);
          to.delta({ ...JSON.parse(m.data), seq: seq!, offset: offset ?? 0 });
          return;
        }
        if (m.event !== 'event') return;
        const ev = JSON.parse(m.data) as Event;
        last = ev.s;
        stopped = ev.k === 'RunStopped';
        to.events([ev]);
      });
    } catch (err) {
      if (signal.aborted) return;
      if (err instanceof Problem && err.status >= 400 && err.status < 500) throw err;
    }
    if (stopped || signal.aborted) break;
    failures++;
    to.line('lost');
    await pause(Math.min(8000, 250 * 2 ** Math.min(failures, 5)), signal);
  }
  if (stopped) to.line('ended');
}

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((done) => {
    const id = setTimeout(done, ms);
    signal.addEventListener('abort', () => (clearTimeout(id), done()), { once: true });
  });

export interface SSE { id: string; event: string; data: string }

/** Reads an event stream to its end. */
export async function readStream(body: ReadableStream<Uint8Array>, each: (m: SSE) => void): Promise<void> {
  const reader = body.getReader();
  const text = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += text.decode(value, { stream: true });
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      const m: SSE = { id: '', event: 'message', data: '' };
      for (const line of rest.slice(0, end).split('\n')) {
        const colon = line.indexOf(':');
        if (colon <= 0) continue;
        const value = line.slice(colon + 1).replace(/^ /, '');
        const field = line.slice(0, colon);
        if (field === 'id') m.id = value;
        else if (field === 'event') m.event = value;
        else if (field === 'data') m.data += (m.data && '\n') + value;
      }
      rest = rest.slice(end + 2);
      if (m.data) each(m);
    }
  }
}
