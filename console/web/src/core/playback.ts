import type { Item } from './player';
import { Story, type Row } from './story';

/** The rows after any number of items of a run, at the cost of a look-up: rows are made once, in order. */
export class Playback {
  readonly story = new Story();
  private rows: Uint32Array; // after so many items
  private begins: Uint32Array; // the item that began the attempt under way, plus 1; 0: none is

  constructor(private items: Item[]) {
    this.rows = new Uint32Array(items.length + 1);
    this.begins = new Uint32Array(items.length + 1);
    let begin = 0;
    items.forEach((it, i) => {
      if (it.event) {
        this.story.add(it.event);
        if (it.event.k === 'ModelCallStarted') begin = i + 1;
        if (it.event.k === 'ModelReplied' || it.event.k === 'ModelFailed') begin = 0;
      }
      this.rows[i + 1] = this.story.rows.length;
      this.begins[i + 1] = begin;
    });
  }

  /** What is there after n items: the first count rows, and those of a response that is under way. */
  at(n: number): { count: number; live: Row[] } {
    const live = new Map<string, Row>();
    const begin = this.begins[n]!;
    for (let i = begin; begin > 0 && i < n; i++) {
      const it = this.items[i]!;
      if (it.offset === 0) continue;
      const key = it.block + it.channel;
      const row = live.get(key);
      if (row) row.text += it.text;
      else live.set(key, { kind: it.channel === 'arguments' ? 'call' : (it.channel as 'text' | 'thought'), seq: it.seq, t: it.at, round: this.story.rounds.length, head: '', text: it.text, live: true });
    }
    return { count: this.rows[n]!, live: [...live.values()] };
  }
}
