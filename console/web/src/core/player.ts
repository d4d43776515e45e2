// The player of package recording once more: recording/testdata/player says what both of them do.
import { Screen, type Block, type Item } from './screen';

export { timeline } from './screen';
export type { Block, Item } from './screen';

export interface Options {
  speed?: number; // 1
  max_wait?: number; // longer waits are cut to this; 0: 2 s, negative: none is cut
  step?: boolean; // stop after each event
}

export interface View {
  pos: number;
  total: number;
  real: number;
  shown: number;
  items: number;
  event: number;
  round: number;
  playing: boolean;
  speed: number;
  wait?: { cause: string; cut: number };
  expanded?: boolean;
  help?: boolean;
  typing?: boolean;
  query?: string;
  missed?: boolean;
}

export interface Mark {
  at: number;
  kind: 'round' | 'tool' | 'approval' | 'stop' | 'wait';
  seq: number;
  cut?: number;
  why?: string;
}

const speeds = [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64];

/** Plays the items of a timeline. It has no clock: each call is told the time, in microseconds of any clock that does not go back. */
export class Player {
  speed: number;
  playing: boolean;
  shown = 0;
  readonly at: number[] = []; // of each item on the line of what is played
  readonly cut: number[] = []; // of the wait before each item
  private rounds: number[] = [];
  private pos = 0;
  private since: number;
  private screen = new Screen();
  private expanded = false;
  private help = false;
  private typing = false;
  private query = '';
  private missed = false;
  private step: boolean;

  /** Without a screen (screen false) blocks stays empty: for who shows the items in another way. */
  constructor(readonly items: Item[], o: Options, now: number, private withScreen = true) {
    this.speed = o.speed && o.speed > 0 ? o.speed : 1;
    this.step = !!o.step;
    this.playing = !this.step;
    this.since = now;
    const most = o.max_wait ? o.max_wait : 2_000_000;
    let line = 0;
    let last = items[0]?.at ?? 0;
    items.forEach((it, i) => {
      const gap = it.at - last;
      const left = most > 0 && gap > most ? most : gap;
      line += left;
      this.at.push(line);
      this.cut.push(gap - left);
      last = it.at;
      if (it.event?.k === 'ModelCallStarted' && (it.event.b.attempt ?? 0) <= 1) this.rounds.push(i);
    });
    this.tick(now);
  }

  total(): number {
    return this.at[this.at.length - 1] ?? 0;
  }

  blocks(): Block[] {
    if (!this.expanded) return this.screen.blocks;
    return this.screen.blocks.map((b) => (b.folded ? { ...b, folded: false } : b));
  }

  private position(now: number): number {
    return this.playing ? Math.min(this.pos + Math.trunc((now - this.since) * this.speed), this.total()) : this.pos;
  }

  /** How many items come at or before a position. */
  private until(pos: number): number {
    let lo = 0;
    let hi = this.at.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (this.at[mid]! > pos) hi = mid;
      else lo = mid + 1;
    }
    return lo;
  }

  private roundsBefore(shown: number): number {
    let lo = 0;
    let hi = this.rounds.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (this.rounds[mid]! < shown) lo = mid + 1;
      else hi = mid;
    }
    return lo;
  }

  tick(now: number): void {
    this.pos = this.position(now);
    this.since = now;
    let n = this.until(this.pos);
    // a step stops within items of one moment
    if (!this.playing && this.shown > 0 && this.shown <= n && this.shown < this.at.length && this.at[this.shown - 1] === this.pos) n = this.shown;
    this.upto(n);
    if (this.playing && this.shown === this.items.length) this.playing = false;
  }

  private upto(n: number): void {
    if (n < this.shown) {
      this.screen = new Screen();
      if (this.withScreen) this.shown = 0;
    }
    if (this.withScreen) for (; this.shown < n; this.shown++) this.screen.apply(this.items[this.shown]!, this.cut[this.shown]!);
    this.shown = n;
  }

  /** When the next item is due; null while nothing will come by itself. */
  next(now: number): number | null {
    if (!this.playing || this.shown >= this.items.length) return null;
    return now + Math.max((this.at[this.shown]! - this.position(now)) / this.speed, 0);
  }

  /** A key that was pressed: a character, or left, right, space, enter, escape, backspace. It says whether the key means anything. */
  key(now: number, key: string): boolean {
    this.tick(now);
    if (this.typing) return this.typed(key);
    switch (key) {
      case 'space':
      case ' ':
        if (this.step) this.event(1);
        else if (this.playing) this.playing = false;
        else {
          if (this.shown === this.items.length) this.seek(0);
          this.playing = true;
        }
        return true;
      case 'right': return this.event(1);
      case 'left': return this.event(-1);
      case ']': return this.round(1);
      case '[': return this.round(-1);
      case '.': return this.faster(1);
      case ',': return this.faster(-1);
      case '/':
        this.typing = true;
        this.query = '';
        this.missed = false;
        return true;
      case 'n': return this.find(this.shown, 1);
      case 'N': return this.find(this.shown - 2, -1);
      case 'e':
        this.expanded = !this.expanded;
        return true;
      case '?':
        this.help = !this.help;
        return true;
      case 'escape':
        this.help = this.missed = false;
        this.query = '';
        return true;
    }
    if (!/^[0-9]$/.test(key)) return false;
    this.seek(Math.trunc((this.total() * Number(key)) / 10));
    return true;
  }

  private typed(key: string): boolean {
    if (key === 'enter') {
      this.typing = false;
      return this.find(this.shown, 1);
    }
    if (key === 'escape') {
      this.typing = false;
      this.query = '';
    } else if (key === 'backspace') this.query = [...this.query].slice(0, -1).join('');
    else if (key === 'space') this.query += ' ';
    else if ([...key].length === 1) this.query += key;
    else return false;
    return true;
  }

  /** Goes to a position on the line. */
  seek(pos: number): void {
    this.pos = Math.max(Math.min(pos, this.total()), 0);
    this.upto(this.until(this.pos));
  }

  /** Shows everything up to an item and stops there. */
  jump(i: number): void {
    this.playing = false;
    this.pos = this.at[i]!;
    this.upto(i + 1);
  }

  private event(by: number): true {
    this.playing = false;
    for (let i = this.shown - 1 + by; i >= 0 && i < this.items.length; i += by) {
      if (this.items[i]!.offset > 0) continue;
      this.jump(i);
      break;
    }
    return true;
  }

  private round(by: number): true {
    const cur = this.shown - 1;
    const to = by > 0 ? this.rounds.find((i) => i > cur) : this.rounds.findLast((i) => i < cur);
    if (to !== undefined) this.jump(to);
    else if (this.items.length) this.jump(by > 0 ? this.items.length - 1 : 0);
    return true;
  }

  private faster(by: number): true {
    let i = 0;
    while (i < speeds.length - 1 && speeds[i]! < this.speed) i++;
    this.speed = speeds[Math.max(Math.min(i + by, speeds.length - 1), 0)]!;
    return true;
  }

  private find(from: number, by: number): true {
    const q = this.query.toLowerCase();
    if (!q) return true;
    for (let i = from; i >= 0 && i < this.items.length; i += by) {
      const ev = this.items[i]!.event;
      if (!ev || !(ev.k + ' ' + JSON.stringify(ev.b)).toLowerCase().includes(q)) continue;
      this.missed = false;
      this.jump(i);
      return true;
    }
    this.missed = true;
    return true;
  }

  view(): View {
    const v: View = { pos: this.pos, total: this.total(), real: this.items[this.shown - 1]?.at ?? 0, shown: this.shown, items: this.items.length, event: 0, round: this.roundsBefore(this.shown), playing: this.playing, speed: this.speed };
    for (let i = this.shown - 1; i >= 0; i--) {
      if (this.items[i]!.offset > 0) continue;
      v.event = this.items[i]!.seq;
      break;
    }
    const cut = this.cut[this.shown] ?? 0;
    if (cut > 0) v.wait = { cause: this.items[this.shown]!.wait, cut };
    if (this.expanded) v.expanded = true;
    if (this.help) v.help = true;
    if (this.typing) v.typing = true;
    if (this.query) v.query = this.query;
    if (this.missed) v.missed = true;
    return v;
  }

  /** Where rounds begin, tools run, approvals are asked for and given, runs stop, and waits are cut. */
  marks(): Mark[] {
    const out: Mark[] = [];
    this.items.forEach((it, i) => {
      const at = this.at[i]!;
      if (this.cut[i]! > 0) out.push({ at, kind: 'wait', seq: it.seq, cut: this.cut[i]!, why: it.wait });
      const k = it.event?.k;
      if (k === 'ModelCallStarted') {
        if ((it.event!.b.attempt ?? 0) <= 1) out.push({ at, kind: 'round', seq: it.seq });
      } else if (k === 'ToolStarted' || k === 'ChildStarted') out.push({ at, kind: 'tool', seq: it.seq });
      else if (k === 'ApprovalAsked' || k === 'ApprovalDecided') out.push({ at, kind: 'approval', seq: it.seq });
      else if (k === 'RunStopped') out.push({ at, kind: 'stop', seq: it.seq });
    });
    return out;
  }
}
