// The timeline and the screen of package recording's player once more.
import type { Block as Part, Body, Event } from './event';
import type { Recording, RunPart } from './read';
import { Waiting, type Cause } from './wait';

/** One thing that a player shows: an event, or (offset above 0) a piece of a streamed response. Times are microseconds. */
export interface Item {
  at: number;
  run: number;
  seq: number;
  offset: number;
  event?: Event;
  block: number;
  channel: string;
  text: string;
  wait: Cause;
}

/** What happened in a recording in the order in which it happened. */
export function timeline(rec: Recording): Item[] {
  const out: Item[] = [];
  rec.runs.forEach((run, n) => itemsOf(run, n, rec.header.started ?? 0, out));
  return out.sort((a, b) => a.at - b.at);
}

function itemsOf(run: RunPart, n: number, start: number, out: Item[]): void {
  const w = new Waiting();
  let attempt = 0;
  let next = 0;
  for (const ev of run.events) {
    const at = ev.t - start;
    const wait = w.apply(ev);
    if (ev.k === 'ModelCallStarted') attempt = ev.s;
    if (ev.k === 'ModelReplied') {
      while (next < run.deltas.length && run.deltas[next]!.seq < attempt) next++;
      for (; next < run.deltas.length && run.deltas[next]!.seq === attempt; next++) {
        const d = run.deltas[next]!;
        out.push({ at: Math.min(d.t, at), run: n, seq: attempt, offset: d.offset, block: d.block, channel: d.channel, text: d.text, wait: 'model' });
      }
    }
    out.push({ at, run: n, seq: ev.s, offset: 0, event: ev, block: 0, channel: '', text: '', wait });
  }
}

export interface Block {
  kind: string; // user, thought, text, call, result, note, wait, stop
  run?: number;
  seq: number;
  text?: string;
  tool?: string;
  args?: string;
  failed?: boolean;
  folded?: boolean;
  open?: boolean;
  cause?: string;
  cut?: number;
}

interface Shown extends Block {
  block?: number;
}

/** The blocks after some items. */
export class Screen {
  blocks: Shown[] = [];
  private tools = new Map<string, string>();

  apply(it: Item, cut: number): void {
    if (cut > 0) this.blocks.push({ kind: 'wait', run: it.run, seq: it.seq, cause: it.wait, cut });
    if (it.offset > 0) this.piece(it);
    else this.event(it, it.event!.k, it.event!.b);
  }

  private piece(it: Item): void {
    for (let i = this.blocks.length - 1; i >= 0 && i >= this.blocks.length - 16; i--) {
      const b = this.blocks[i]!;
      if (!b.open || b.run !== it.run || b.block !== it.block) continue;
      this.blocks[i] = b.kind === 'call' ? { ...b, args: (b.args ?? '') + it.text } : { ...b, text: (b.text ?? '') + it.text };
      return;
    }
    const b: Shown = { kind: it.channel, run: it.run, seq: it.seq, text: it.text, open: true, block: it.block };
    if (it.channel === 'arguments') Object.assign(b, { kind: 'call', text: '', args: it.text });
    if (it.channel === 'thought') b.folded = true;
    this.blocks.push(b);
  }

  private event(it: Item, kind: string, b: Body): void {
    const add = (x: Omit<Shown, 'run' | 'seq'>) => this.blocks.push({ run: it.run, seq: it.seq, ...x });
    const note = (text: string) => add({ kind: 'note', text });
    const tool = this.tools.get(`${it.run}/${b.call}`) ?? b.call;
    switch (kind) {
      case 'RunStarted':
        return void add({ kind: 'user', text: partsText(b.input) });
      case 'MessageTaken':
        return void add({ kind: 'user', text: partsText(b.blocks) });
      case 'ModelReplied':
        return this.replied(it, b);
      case 'ModelFailed':
        this.drop(it.run);
        return note(`model failed (${b.class}): ${b.message ?? ''}`);
      case 'ToolReturned':
        return void add({ kind: 'result', tool, text: b.text });
      case 'ToolFailed':
        return void add({ kind: 'result', tool, text: failureText(b), failed: true });
      case 'CallRefused':
        return void add({ kind: 'result', tool, text: b.message, failed: true });
      case 'ChildStopped':
        return void add({ kind: 'result', tool, text: b.text, failed: b.error });
      case 'ApprovalAsked':
        return note(`${tool} waits for an approval`);
      case 'ApprovalDecided':
        return note(`${tool}: ${b.decision} by ${b.by ?? ''}`);
      case 'EffectResolved':
        return note(`${tool}: ${resolvedText(b)}`);
      case 'LimitReached':
        return note(`limit reached: ${b.limit}`);
      case 'LimitsExtended':
        return note(`limits extended by ${b.by ?? ''}`);
      case 'Nudged':
        return note(`told the model: ${b.text}`);
      case 'CancelRequested':
        return note(`cancelled by ${b.by ?? ''}`);
      case 'Compacted':
        return note('the transcript was shortened');
      case 'ChildStarted':
        return note(`${b.agent ?? ''} runs as ${b.run}`);
      case 'ContractChecked':
        if (!b.ok) note(`not done: missing ${(b.missing ?? []).join('; ')}`);
        return;
      case 'RunStopped':
        return void add({ kind: 'stop', text: b.stop + (b.limit ? ` (${b.limit})` : '') + (b.message ? `: ${b.message}` : '') });
    }
  }

  /** Puts the whole response in the place of its pieces. */
  private replied(it: Item, b: Body): void {
    this.drop(it.run);
    let n = 0;
    (b.blocks ?? []).forEach((bl: Part, block: number) => {
      const at = { run: it.run, seq: it.seq, block };
      if (bl.k === 'thought' && bl.text) this.blocks.push({ ...at, kind: 'thought', text: bl.text, folded: true });
      else if (bl.k === 'text' && bl.text) this.blocks.push({ ...at, kind: 'text', text: bl.text });
      else if (bl.k === 'call') {
        this.blocks.push({ ...at, kind: 'call', tool: bl.name, args: bl.args });
        this.tools.set(`${it.run}/c${b.call}.${++n}`, bl.name ?? '');
      }
    });
  }

  private drop(run: number): void {
    this.blocks = this.blocks.filter((b) => !b.open || b.run !== run);
  }
}

function partsText(blocks: Part[] | undefined): string {
  return (blocks ?? []).flatMap((b) => (b.text ? [b.text] : b.media ? [`(${b.media.mime} ${b.media.name ?? ''})`] : [])).join('\n');
}

function failureText(b: Body): string {
  const text = b.message || 'the tool failed';
  return (b.class === 'unknown' ? 'Outcome unknown: ' : b.cause === 'cancelled' ? 'Interrupted: ' : 'Error: ') + text;
}

function resolvedText(b: Body): string {
  const who = b.by || 'a person';
  const text = b.happened ? `The call did happen (confirmed by ${who}); its result was lost.` : `Error: the call did not happen (confirmed by ${who}).`;
  return b.message ? `${text} ${b.message}` : text;
}
