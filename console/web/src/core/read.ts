import type { Body, Delta, Event } from './event';
import { unzip } from './zip';

/** A delta with its time since the start, in microseconds. */
export interface Timed extends Delta {
  t: number;
}

/** What of a file is not as it should be. None of them keeps the rest from being shown. */
export interface Faults {
  cutOff: boolean; // no footer
  newer: boolean; // a newer version wrote it and says that this one cannot read it
  broken: number | null; // line at which the hash chain breaks
  missing: string[]; // artifacts that events name and the file has not
}

/** One run of a recording. */
export interface RunPart {
  run: string;
  parent?: string;
  call?: string;
  agent?: string;
  events: Event[];
  deltas: Timed[];
}

export interface Recording {
  header: Body;
  runs: RunPart[];
  footer: Body | null;
  faults: Faults;
  lines: number;
}

export class NotARecording extends Error {}

/** The newest format that this reader knows. */
const version = 1;
const tagLength = ',"h":"0000"}'.length;

/**
 * Reads a recording of either form. pause is awaited now and then, so that a page stays alive; begun is
 * called with what there is when the first lines are there; check verifies the hash chain.
 */
export async function read(data: Uint8Array, options: { pause?: () => Promise<void>; begun?: (rec: Recording) => void; check?: boolean } = {}): Promise<Recording> {
  const zipped = data[0] === 0x50 && data[1] === 0x4b;
  const archive = zipped ? await unzip(data) : null;
  const bytes = archive?.lines ?? data;
  const rec: Recording = { header: {}, runs: [], footer: null, lines: 0, faults: { cutOff: false, newer: false, broken: null, missing: [] } };
  const artifacts = archive?.artifacts ?? new Map<string, string>();
  const text = new TextDecoder();
  const deltas: Map<string, string>[] = [];
  const check = options.check && globalThis.crypto?.subtle ? new Chain() : null;
  let n = 0;
  for (let from = 0; from < bytes.length; n++) {
    let to = bytes.indexOf(10, from);
    if (to < 0) to = bytes.length;
    const line = bytes.subarray(from, to);
    from = to + 1;
    if (line.length === 0) continue;
    let l: any;
    try {
      l = JSON.parse(text.decode(line));
    } catch {
      if (n === 0) throw new NotARecording('the first line is no JSON');
      if (from >= bytes.length) break; // half a line: the file was cut off
      throw new NotARecording(`line ${n} is no JSON`);
    }
    if (n === 0) {
      if (l.k !== 'ronda') throw new NotARecording('the first line is no header');
      rec.header = l.b ?? {};
      if (l.reader > version) {
        rec.faults.newer = true;
        return rec;
      }
      rec.runs.push({ run: rec.header.run, agent: rec.header.agent, parent: rec.header.parent, events: [], deltas: [] });
      deltas.push(new Map());
    }
    if (check && rec.faults.broken === null && !(await check.line(line, l))) rec.faults.broken = n;
    take(rec, l, artifacts, deltas);
    if (n === 499) options.begun?.(rec);
    if (n % 500 === 499) await options.pause?.();
  }
  rec.lines = n;
  rec.faults.cutOff = !rec.footer;
  return rec;
}

function take(rec: Recording, l: any, artifacts: Map<string, string>, deltas: Map<string, string>[]): void {
  const r = l.r ?? 0;
  switch (l.k) {
    case 'ronda':
    case 'clock':
    case 'check':
    case 'tape':
      return;
    case 'run':
      rec.runs[r] = { ...l.b, events: [], deltas: [] };
      deltas[r] = new Map();
      return;
    case 'artifact':
      artifacts.set(l.ref, typeof l.text === 'string' ? l.text : '');
      return;
    case 'end':
      rec.footer = l.b;
      return;
    case 'delta': {
      const run = rec.runs[r];
      if (!run) return;
      let t = l.e ?? l.t;
      let offset = l.o ?? 1;
      const block = Number(String(l.b).slice(1));
      const key = `${l.q}.${l.b}`;
      const seen = deltas[r]!;
      let sum = seen.get(key) ?? '';
      for (const [dt, piece] of l.d) {
        t += dt;
        sum += piece;
        run.deltas.push({ seq: l.q, offset: offset++, block, channel: l.c, text: piece, t });
      }
      seen.set(key, sum);
      return;
    }
  }
  if (!/^[A-Z]/.test(l.k)) return; // a kind of line that this version does not know: readers pass it on
  const run = rec.runs[r];
  if (!run) return;
  let body = l.b ?? {};
  if (l.refs) body = resolve(body, (ref) => artifacts.get(ref), deltas[r]!, attempt(run), rec.faults.missing);
  run.events.push({ s: l.q, t: (rec.header.started ?? 0) + (l.e ?? l.t), k: l.k, b: body });
}

/** The event that began the attempt under way. */
function attempt(run: RunPart): number {
  for (let i = run.events.length - 1; i >= 0; i--) if (run.events[i]!.k === 'ModelCallStarted') return run.events[i]!.s;
  return 0;
}

/** Puts texts that stand elsewhere in the file back in their places. */
function resolve(v: any, artifact: (ref: string) => string | undefined, deltas: Map<string, string>, seq: number, missing: string[]): any {
  if (Array.isArray(v)) return v.map((x) => resolve(x, artifact, deltas, seq, missing));
  if (v === null || typeof v !== 'object') return v;
  if (typeof v.$delta === 'number') return deltas.get(`${seq}.b${v.$delta}`) ?? '';
  if (typeof v.$sum === 'number') return '';
  if (typeof v.$ref === 'string') {
    const text = artifact(v.$ref);
    if (text !== undefined) return v.mime === 'application/json' ? parsed(text) : text;
    missing.push(v.$ref);
    return v.preview ?? '';
  }
  const out: any = {};
  for (const k in v) out[k] = resolve(v[k], artifact, deltas, seq, missing);
  return out;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The hash chain: the digest over the digest before and the line without its tag; each line holds its first four hex digits. */
class Chain {
  private sum: Uint8Array<ArrayBuffer> = new Uint8Array(32);

  async line(line: Uint8Array, l: any): Promise<boolean> {
    const body = line.subarray(0, line.length - tagLength);
    const all = new Uint8Array(32 + body.length);
    all.set(this.sum);
    all.set(body, 32);
    this.sum = new Uint8Array(await crypto.subtle.digest('SHA-256', all));
    return hex(this.sum.subarray(0, 2)) === l.h;
  }
}

const hex = (b: Uint8Array) => Array.from(b, (x) => x.toString(16).padStart(2, '0')).join('');
