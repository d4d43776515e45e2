import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Player, timeline } from './player';
import { read } from './read';

// The vectors are those of the Go player: both must do the same.
const data = join(import.meta.dirname, '../../../../recording/testdata');
const files = readdirSync(join(data, 'player')).filter((f) => f.endsWith('.json'));

/** What Go leaves out of JSON when it is empty. */
function bare(o: any): any {
  return Object.fromEntries(Object.entries(o).filter(([k, v]) => k === 'seq' || (v !== '' && v !== false && v !== undefined && v !== 0)));
}

describe('player', () => {
  expect(files.length).toBeGreaterThan(4);
  for (const f of files) {
    it(f, async () => {
      const v = JSON.parse(readFileSync(join(data, 'player', f), 'utf8'));
      const rec = await read(new Uint8Array(readFileSync(join(data, v.recording))), { check: true });
      expect(rec.faults).toEqual({ cutOff: false, newer: false, broken: null, missing: [] });
      const p = new Player(timeline(rec), v.options, 0);
      for (const s of v.steps) {
        p.tick(s.at);
        for (const k of s.keys ?? []) p.key(s.at, k);
        const blocks = p.blocks();
        const last = blocks.slice(-3).map(({ block: _, ...b }: any) => bare(b));
        expect({ at: s.at, ...p.view(), blocks: blocks.length, last }).toEqual({ at: s.at, ...s.want, last: s.want.last.map(bare) });
      }
    });
  }
});
