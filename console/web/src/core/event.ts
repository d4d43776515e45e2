// What the console knows of the journal's events: package loop is the source of the words.

export interface Block {
  k: 'text' | 'thought' | 'call' | 'result' | 'opaque' | 'media';
  text?: string;
  call?: string;
  name?: string;
  args?: string;
  error?: boolean;
  media?: { mime: string; name?: string };
}

export type Body = Record<string, any>;

/** One durable fact. t is in microseconds since the Unix epoch. */
export interface Event {
  s: number;
  t: number;
  k: string;
  b: Body;
}

/** A piece of a streamed response: of the attempt that event seq began, the offset-th from 1. */
export interface Delta {
  seq: number;
  offset: number;
  block: number;
  channel: 'thought' | 'text' | 'arguments';
  text: string;
  name?: string;
}

/** Text of blocks, one after the other. */
export function textOf(blocks: Block[] | undefined): string {
  let out = '';
  for (const b of blocks ?? []) if (b.k === 'text' && b.text) out += (out ? '\n' : '') + b.text;
  return out;
}

/** JSON as it stands, indented where it is JSON. */
export function pretty(json: unknown): string {
  if (typeof json === 'string') {
    try {
      return JSON.stringify(JSON.parse(json), null, 2);
    } catch {
      return json;
    }
  }
  return json === undefined ? '' : JSON.stringify(json, null, 2);
}
