import { textOf, type Block, type Delta, type Event } from './event';
import { Waiting, type Cause } from './wait';

export type { Cause };

/** What a row of the transcript is. Each has its own look. */
export type RowKind =
  | 'user' | 'thought' | 'text' | 'call' | 'result' | 'refused' | 'asked' | 'decided' | 'failure' | 'effect'
  | 'nudge' | 'limit' | 'extended' | 'contract' | 'child' | 'cancel' | 'compacted' | 'resumed' | 'stop' | 'wait' | 'unknown';

/** One row of the transcript. Rows are made once and never changed, except those of a response that is under way. */
export interface Row {
  kind: RowKind;
  seq: number;
  t: number; // microseconds since the start of the run
  round: number; // model call that it belongs to, 0 before the first
  head: string; // a word of the interface, or a name
  text: string;
  tool?: string;
  call?: string;
  bad?: boolean;
  cause?: Cause; // wait
  us?: number; // wait: its length
  live?: boolean;
  by?: string;
  run?: string; // child
}

/** A model call with what it asked for: the outline and the marks of the time line. */
export interface Round {
  call: number;
  seq: number;
  t: number;
  row: number; // index of its first row
  tools: string[];
  failures: number;
  replied: boolean;
  closing: boolean;
  nudged?: string;
}

export interface Mark {
  t: number;
  kind: 'round' | 'tool' | 'approval' | 'stop' | 'failure';
}

export interface Wait {
  from: number;
  to: number;
  cause: Cause;
}

/** Waits shorter than this are not worth a row. */
const waitFrom = 1_000_000;

/** The folded story of one run: rows, rounds, marks and counters. add takes events in the order of their sequence; each once. */
export class Story {
  rows: Row[] = [];
  rounds: Round[] = [];
  marks: Mark[] = [];
  waits: Wait[] = [];
  started = 0;
  last = 0; // seq
  end = 0; // t of the last event
  agent = '';
  model = '';
  run = '';
  config: any = null;
  stop: any = null;
  facts: Record<string, unknown> = {};
  counts = { rounds: 0, modelCalls: 0, toolCalls: 0, input: 0, output: 0 };
  unknown = 0; // events of kinds that this version does not know
  private prev = 0;
  private waitingFor = new Waiting();
  private tool = new Map<string, string>();
  private live: { seq: number; rows: Map<string, Row> } | null = null;

  add(ev: Event): void {
    if (ev.s <= this.last && this.last > 0) return;
    const b = ev.b ?? {};
    if (this.last === 0) this.started = this.prev = ev.t;
    const t = ev.t - this.started;
    this.wait(ev, t);
    this.prev = ev.t;
    this.last = ev.s;
    this.end = t;
    const at = { seq: ev.s, t, round: this.rounds.length };
    const push = (r: Omit<Row, 'seq' | 't' | 'round'>) => this.rows.push({ ...at, ...r });
    const named = (call: string) => this.tool.get(call) ?? call;
    switch (ev.k) {
      case 'RunStarted':
        this.run = b.run;
        this.config = b.config;
        this.agent = b.config?.agent ?? '';
        this.model = b.config?.model ?? '';
        push({ kind: 'user', head: b.by || 'user', text: textOf(b.input), by: b.by });
        break;
      case 'MessageTaken':
        push({ kind: 'user', head: b.by || 'user', text: textOf(b.blocks), by: b.by });
        break;
      case 'ModelCallStarted':
        if ((b.attempt ?? 1) <= 1) {
          this.rounds.push({ call: b.call, seq: ev.s, t, row: this.rows.length, tools: [], failures: 0, replied: false, closing: !!b.closing });
          this.counts.modelCalls++;
          this.marks.push({ t, kind: 'round' });
        }
        this.live = { seq: ev.s, rows: new Map() };
        break;
      case 'ModelReplied':
        this.dropLive();
        this.replied(b, at, push);
        break;
      case 'ModelFailed':
        this.dropLive();
        if (this.rounds.length) this.rounds[this.rounds.length - 1]!.failures++;
        this.marks.push({ t, kind: 'failure' });
        push({ kind: 'failure', head: 'model', text: words(b.class, b.status, b.clock, b.message), bad: true });
        break;
      case 'CallRefused':
        push({ kind: 'refused', head: b.why, text: b.message, tool: named(b.call), call: b.call, bad: true });
        break;
      case 'ApprovalAsked':
        this.marks.push({ t, kind: 'approval' });
        push({ kind: 'asked', head: named(b.call), text: b.reason ?? '', tool: named(b.call), call: b.call });
        break;
      case 'ApprovalDecided':
        push({ kind: 'decided', head: b.decision, text: b.message ?? '', tool: named(b.call), call: b.call, by: b.by, bad: b.decision === 'reject' || b.decision === 'expired' });
        break;
      case 'ToolStarted':
        this.counts.toolCalls += (b.attempt ?? 1) <= 1 ? 1 : 0;
        this.marks.push({ t, kind: 'tool' });
        break;
      case 'ToolReturned':
        this.adopt(b.facts);
        push({ kind: 'result', head: named(b.call), text: b.text ?? '', tool: named(b.call), call: b.call });
        break;
      case 'ToolFailed':
        this.adopt(b.facts);
        this.marks.push({ t, kind: 'failure' });
        push({ kind: 'failure', head: named(b.call), text: words(b.class, 0, b.clock, b.message), tool: named(b.call), call: b.call, bad: true });
        break;
      case 'EffectChecked':
        this.adopt(b.facts);
        push({ kind: 'effect', head: b.happened, text: b.text || b.message || '', tool: named(b.call), call: b.call });
        break;
      case 'EffectResolved':
        this.adopt(b.facts);
        push({ kind: 'effect', head: b.happened ? 'yes' : 'no', text: b.message ?? '', tool: named(b.call), call: b.call, by: b.by });
        break;
      case 'ContractChecked':
        push({ kind: 'contract', head: b.ok ? 'ok' : 'missing', text: (b.missing ?? []).join('; '), bad: !b.ok });
        break;
      case 'Nudged':
        if (this.rounds.length) this.rounds[this.rounds.length - 1]!.nudged = b.reason;
        push({ kind: 'nudge', head: b.reason, text: b.text });
        break;
      case 'LimitReached':
        push({ kind: 'limit', head: b.limit, text: b.whose ?? '', bad: true });
        break;
      case 'LimitsExtended':
        push({ kind: 'extended', head: Object.entries(b.add ?? {}).map(([k, v]) => `${k} +${v}`).join(', '), text: '', by: b.by });
        break;
      case 'ChildStarted':
        push({ kind: 'child', head: b.agent || named(b.call), text: '', run: b.run, call: b.call });
        break;
      case 'ChildStopped':
        this.adopt(b.facts);
        push({ kind: 'result', head: named(b.call), text: b.text ?? '', tool: named(b.call), call: b.call, bad: !!b.error, run: b.run });
        break;
      case 'CancelRequested':
        push({ kind: 'cancel', head: b.by || '', text: b.reason ?? '', by: b.by });
        break;
      case 'Compacted':
        push({ kind: 'compacted', head: '', text: b.failed ?? '', bad: !!b.failed });
        break;
      case 'RunResumed':
        push({ kind: 'resumed', head: b.by || '', text: '' });
        break;
      case 'RunStopped':
        this.stop = b;
        this.marks.push({ t, kind: 'stop' });
        push({ kind: 'stop', head: b.stop, text: stopText(b), bad: b.stop !== 'completed' });
        break;
      case 'CallAuthorized':
      case 'StandingRevoked':
        break;
      default:
        this.unknown++;
        push({ kind: 'unknown', head: ev.k, text: '' });
    }
  }

  /** A piece of the response that is under way. Pieces of any other attempt are late and dropped. */
  delta(d: Delta): void {
    if (!this.live || this.live.seq !== d.seq) return;
    const key = d.block + d.channel;
    let row = this.live.rows.get(key);
    if (!row) {
      const kind: RowKind = d.channel === 'thought' ? 'thought' : d.channel === 'text' ? 'text' : 'call';
      const late = d.offset > 1 && this.live.rows.size === 0; // the viewer came while the response was under way
      row = { kind, seq: d.seq, t: this.end, round: this.rounds.length, head: d.name ?? '', text: late ? '…' : '', tool: d.name, live: true };
      this.live.rows.set(key, row);
      this.rows.push(row);
    }
    if (d.name) row.head = row.tool = d.name;
    row.text += d.text;
  }

  /** What the run waits for a person with. */
  waiting(): boolean {
    return this.waitingFor.person();
  }

  private replied(b: any, at: { seq: number; t: number; round: number }, push: (r: Omit<Row, 'seq' | 't' | 'round'>) => void): void {
    if (b.usage) {
      const u = b.usage;
      this.counts.input += (u.input ?? 0) + (u.cache_read ?? 0) + (u.cache_write ?? 0);
      this.counts.output += u.output ?? 0;
    }
    let n = 0;
    const round = this.rounds[this.rounds.length - 1];
    if (round) round.replied = true;
    for (const bl of (b.blocks ?? []) as Block[]) {
      switch (bl.k) {
        case 'thought':
          if (bl.text) push({ kind: 'thought', head: '', text: bl.text });
          break;
        case 'text':
          if (bl.text) push({ kind: 'text', head: '', text: bl.text });
          break;
        case 'call': {
          const id = `c${b.call}.${++n}`;
          this.tool.set(id, bl.name ?? '');
          round?.tools.push(bl.name ?? '');
          push({ kind: 'call', head: bl.name ?? '', text: bl.args ?? '', tool: bl.name, call: id });
          break;
        }
      }
    }
    if (n > 0) this.counts.rounds++;
    if (b.finish === 'length' || b.finish === 'filter' || b.finish === 'malformed') push({ kind: 'failure', head: 'model', text: b.finish + (b.detail ? `: ${b.detail}` : ''), bad: true });
  }

  private adopt(facts: Record<string, unknown> | undefined): void {
    for (const k in facts) this.facts[k] = facts[k];
  }

  private dropLive(): void {
    if (!this.live) return;
    let n = this.live.rows.size;
    for (let i = this.rows.length - 1; i >= 0 && n > 0; i--) {
      if (!this.rows[i]!.live) continue; // what came in the meantime: a message
      this.rows.splice(i, 1);
      n--;
    }
    this.live = null;
  }

  /** The time before an event becomes a wait where it is long. */
  private wait(ev: Event, t: number): void {
    const cause = this.waitingFor.apply(ev);
    const us = ev.t - this.prev;
    if (us < waitFrom) return;
    this.waits.push({ from: t - us, to: t, cause });
    if (cause === 'model' || cause === 'tool') return;
    this.rows.push({ kind: 'wait', seq: ev.s, t: t - us, round: this.rounds.length, head: cause, text: '', cause, us });
  }
}

function words(cls: string, status: number | undefined, clock: string | undefined, message: string | undefined): string {
  return [cls, status || '', clock ? `(${clock})` : '', message ?? ''].filter(Boolean).join(' ');
}

function stopText(b: any): string {
  const parts: string[] = [];
  if (b.limit) parts.push(b.limit + (b.whose ? ` (${b.whose})` : ''));
  if (b.message) parts.push(b.message);
  if (b.missing?.length) parts.push(b.missing.join('; '));
  return parts.join(' · ');
}
