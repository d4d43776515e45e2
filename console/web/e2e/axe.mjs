import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { check } from './check.mjs';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Nothing that axe knows of WCAG 2.2 A and AA may be wrong. The page's own policy forbids injected scripts, so it goes in by the debugger. */
export async function axe(page, where) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(source);
  const got = await page.evaluate(() =>
    window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], rules: { region: { enabled: true } }, resultTypes: ['violations'] }),
  );
  const found = got.violations.map((v) => `${v.id} (${v.impact}): ${v.nodes.slice(0, 3).map((n) => n.target.join(' ') + ' ' + (n.any[0]?.message ?? n.all[0]?.message ?? n.none[0]?.message ?? '')).join(' | ')}`);
  check(`axe: ${where}`, found.length === 0, found.join('\n  '));
}
