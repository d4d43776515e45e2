// What a newcomer does with the demo: look, start, watch, approve, ask why, compare, replay, open a file. On every screen and in every state
// nothing that axe knows is wrong, the page does not scroll sideways at 320 pixels, and its policy refuses nothing.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { axe } from './axe.mjs';
import { open } from './browser.mjs';
import { check, end, same } from './check.mjs';
import { serve } from './server.mjs';

const shots = process.env.SHOTS ?? join(import.meta.dirname, '../.shots');
mkdirSync(shots, { recursive: true });
const testdata = join(import.meta.dirname, '../../../recording/testdata/v1');
const server = await serve('--demo');
const b = await open();
const page = b.page;
page.setDefaultTimeout(20_000);
const go = async (hash) => {
  await page.goto(server.url + '/#/' + hash);
  await page.waitForSelector('main h1, main form');
};
const api = async (path, init) => (await fetch(server.url + path, init)).json();
const shot = (name) => page.screenshot({ path: join(shots, name + '.png') });
const badge = (state) => page.waitForSelector(`.badge[data-state="${state}"]`);
const text = (sel) => page.locator(sel).first().innerText();

async function look(name) {
  await axe(page, name);
  await shot(name);
  await page.emulateMedia({ colorScheme: 'dark' });
  await axe(page, name + ', dark');
  await shot(name + '-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 320, height: 720 });
  await page.waitForTimeout(60);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  check(`${name} fits 320 pixels`, wide <= 320, `${wide} wide`);
  await shot(name + '-320');
  await axe(page, name + ', 320 px');
  await page.setViewportSize({ width: 1280, height: 860 });
}

// The list, with runs of different ends.
await go('runs');
await page.waitForSelector('[data-run]');
same('runs of the demo', await page.locator('[data-run]').count(), 9);
for (const s of ['completed', 'limit', 'blocked', 'approval']) await badge(s);
check('scripted models are called scripted', (await page.locator('[data-run] .tag').allInnerTexts()).every((t) => t === 'scripted'));
await look('runs');
await page.locator('.filter select').nth(1).selectOption('limit');
await page.waitForFunction(() => document.querySelectorAll('[data-run]').length === 2);
await page.locator('.filter select').nth(1).selectOption('denied');
await page.waitForSelector('.empty');
await look('runs-none');
await page.locator('.filter select').nth(1).selectOption('');
await page.getByLabel('Find').fill('squat');
await page.waitForFunction(() => document.querySelectorAll('[data-run]').length === 1);

// Start a run, watch it live: its text streams, and no live region speaks it.
await go('agents');
await page.getByRole('button', { name: 'Start a run: support' }).click();
await look('agents');
await page.getByLabel('Task').fill('Answer case 4806');
await page.getByRole('button', { name: 'Start', exact: true }).click();
await page.waitForSelector('.row.live', { timeout: 20_000 });
check('a run that streams is shown as running', (await page.locator('.badge[data-state="running"]').count()) > 0);
same('streamed text is in no live region', await page.evaluate(() => document.querySelectorAll('[aria-live] .row, [role=status] .row, [role=log] .row, [role=alert] .row').length), 0);
await shot('run-live');
await axe(page, 'run, live');
const run = decodeURIComponent(new URL(page.url()).hash.split('/')[2]);

// It waits for an approval. One key, held or pressed again, approves nothing.
await page.waitForSelector('.approval', { timeout: 60_000 });
await look('run-waiting');
await page.keyboard.press('a');
await page.waitForSelector('dialog[open]');
for (const k of ['a', 'a', 'Enter', 'Space', 'y']) await page.keyboard.press(k);
await page.waitForTimeout(400);
same('no accidental approval', (await api(`/v1/runs/${run}`)).status, 'waiting');
await axe(page, 'approve, asked once more');
await shot('approve');
await page.keyboard.press('Escape');
await page.keyboard.press('e');
await page.waitForSelector('dialog textarea');
await page.getByLabel('JSON').check();
const area = page.locator('dialog textarea').first();
const args = await area.inputValue();
await area.fill(args.replace('"draft_id"', '"draft"'));
await page.waitForSelector('dialog .problem');
check('the edit form says what the schema wants', (await text('dialog .problem')).includes('draft_id'));
await area.fill(args.replace('Aoife', 'Ms Brennan'));
await page.waitForSelector('.dadd');
await page.getByLabel('JSON').uncheck();
check('fields show what was edited', (await page.getByLabel('body').inputValue()).includes('Ms Brennan'));
await look('edit');
await page.keyboard.press('Escape');
await page.keyboard.press('a');
await page.waitForSelector('dialog[open]');
await page.getByRole('button', { name: 'Yes, approve' }).click();
await badge('completed');
await page.waitForSelector('.answer');
check('the reply was sent', Object.keys((await api(`/v1/runs/${run}`)).facts).includes('receipt'));
const decided = (await api(`/v1/runs/${run}/events?limit=1000`)).events.find((e) => e.k === 'ApprovalDecided');
same('who approved is on record', decided.b.by, 'local');
await page.waitForFunction(() => !document.querySelector('.approval'));
await look('run-completed');

// The same view as a recording, by keys alone.
await page.keyboard.press('0');
await page.waitForFunction(() => Number(document.querySelector('.timeline input').value) === 0);
for (const k of [']', 'ArrowRight', '.', ',', 'e']) await page.keyboard.press(k);
await page.keyboard.press('/');
await page.keyboard.type('finish');
await page.keyboard.press('Enter');
await page.waitForTimeout(200);
check('search moves in the recording', Number(await page.locator('.timeline input').inputValue()) > 0);
await page.locator('.rows article').first().focus();
await page.keyboard.press('ArrowDown');
check('rows are reached by keys', await page.evaluate(() => document.activeElement?.tagName === 'ARTICLE'));
await page.keyboard.press('5');
await page.keyboard.press('Space');
await page.waitForTimeout(500);
await look('run-replay');

// Why, compare, budgets, approvals.
await go(`runs/${run}/why`);
await page.waitForSelector('.claims li');
await look('why');
await page.locator('.claims a').first().click();
await page.waitForSelector('.row.chosen');
const rows = (await api('/v1/runs')).runs;
const of = (stop, agent = 'support') => rows.find((r) => r.stop === stop && r.agent === agent && r.run !== run).run;
await go(`compare/${run}/${of('limit')}`);
await page.waitForSelector('.pairsof tr.first');
await look('compare');
await go('compare');
await look('compare-none');
await go('budgets');
await page.waitForSelector('.meter');
await look('budgets');
await go('approvals');
await page.waitForSelector('.approval');
await look('approvals');

// Somebody else answers first: conflict. Nothing is decided twice.
await page.keyboard.press('x');
await page.waitForSelector('dialog[open]');
const [p] = (await api('/v1/approvals')).approvals;
await fetch(`${server.url}/v1/approvals/${encodeURIComponent(p.id)}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ decision: 'approve', digest: p.digest }) });
await page.waitForTimeout(200);
await page.locator('dialog').getByRole('button', { name: 'Reject' }).click();
await page.waitForSelector('.empty, .badge[data-state="conflict"]');
await page.waitForFunction(() => !document.querySelector('.approval'), null, { timeout: 10_000 });
await look('approvals-none');

// Stops, each with its own look.
for (const [stop, agent] of [['limit'], ['blocked'], ['limit', 'coach']]) {
  await go('runs/' + of(stop, agent));
  await badge(stop);
  await page.waitForSelector('.row.k-stop, .rows article');
  await axe(page, `run stopped: ${stop}`);
}
await go('runs/run_none');
await page.waitForSelector('.problem');
await look('run-unknown');

// Files: whole, cut off, changed, newer, without an artifact; and what is none.
await go('open');
await look('open');
const file = async (name, buffer) => page.setInputFiles('input[type=file]', { name, mimeType: 'application/octet-stream', buffer: Buffer.from(buffer) });
const works = readFileSync(join(testdata, 'works.ronda.jsonl'), 'utf8');
await file('works.ronda.jsonl', works);
await badge('completed');
await page.waitForSelector('.rows article');
await look('open-file');
await file('works.ronda', readFileSync(join(testdata, 'works.ronda')));
await badge('ended');
same('a zipped recording has no faults', await page.locator('.banner').count(), 0);
await file('cut.ronda.jsonl', works.split('\n').slice(0, 20).join('\n') + '\n{"s":20,"t":');
await badge('cut_off');
await look('open-cut-off');
await file('changed.ronda.jsonl', works.replace('March', 'Marsh'));
await badge('broken');
await look('open-broken');
await file('newer.ronda.jsonl', works.replace('"reader":1', '"reader":9'));
await badge('newer');
await look('open-newer');
const grows = readFileSync(join(testdata, 'grows.ronda.jsonl'), 'utf8').split('\n');
await file('missing.ronda.jsonl', grows.filter((l) => !(l.includes('"k":"artifact"') && l.includes('text/plain'))).join('\n'));
await badge('missing');
await look('open-missing');
await file('none.txt', 'hello');
await page.waitForSelector('.problem');
await look('open-bad');

// Help with every state, Spanish, keys switched off.
await page.getByRole('button', { name: 'Help and keys' }).click();
await page.waitForSelector('dialog .legend');
await look('help');
await page.getByLabel('Keys without Ctrl are on').uncheck();
await page.keyboard.press('Escape');
await page.keyboard.press('?');
same('keys can be switched off', await page.locator('dialog[open]').count(), 0);
await page.getByLabel('Language').selectOption('es');
await go('runs');
await page.waitForSelector('[data-run]');
same('Spanish', [await text('h1'), await page.evaluate(() => document.documentElement.lang)], ['Ejecuciones', 'es']);
await look('runs-es');
await page.getByLabel('Idioma').selectOption('en');

// Reduced motion: nothing moves.
await page.emulateMedia({ reducedMotion: 'reduce' });
same('nothing is animated with reduced motion', await page.evaluate(() => document.getAnimations().length), 0);
await page.emulateMedia({ reducedMotion: 'no-preference' });

check('the policy refused nothing and nothing failed', b.faults.filter((f) => !/status of (404|409)/.test(f)).length === 0, b.faults.join('\n  '));

// The connection goes and comes back.
await go('agents');
await page.getByRole('button', { name: 'Start a run: coach' }).click();
await page.getByLabel('Task').fill('Save a goal: bench press 105 kg by 31 March.');
await page.getByRole('button', { name: 'Start', exact: true }).click();
await page.waitForSelector('.approval', { timeout: 30_000 });
const before = await page.locator('.rows').getAttribute('data-count');
await b.context.setOffline(true);
process.kill(server.pid, 'SIGSTOP');
await badge('open');
process.kill(server.pid, 'SIGCONT');
await b.context.setOffline(false);
same('nothing was lost', await page.locator('.rows').getAttribute('data-count'), before);
await server.stop();
await badge('lost');
await axe(page, 'disconnected');
await shot('run-lost');

await b.close();
writeFileSync(join(shots, 'faults.txt'), b.faults.join('\n'));
end();
