// Makes the pictures of the README and the recordings of docs/widget.html with the demo: RONDA=./ronda node console/web/pictures.mjs
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from './e2e/browser.mjs';
import { serve } from './e2e/server.mjs';
import { files } from './e2e/static.mjs';

const root = join(import.meta.dirname, '../..');
const pictures = join(root, 'docs/pictures');
const recordings = join(root, 'docs/recordings');
for (const d of [pictures, recordings]) mkdirSync(d, { recursive: true });
const server = await serve('--demo');
const b = await open({ viewport: { width: 1160, height: 720 } });
const page = b.page;
page.setDefaultTimeout(90_000);
const shot = (name) => page.screenshot({ path: join(pictures, name + '.png') });
const api = async (path, body) => (await fetch(server.url + path, body ? { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) } : {})).json();
const until = async (run, status) => {
  for (;;) {
    const r = await api(`/v1/runs/${run}`);
    if (r.status === status) return r;
    if (r.status === 'waiting' && status === 'stopped') for (const p of r.pending) await api(`/v1/approvals/${encodeURIComponent(p.id)}`, { decision: 'approve', digest: p.digest });
    await new Promise((done) => setTimeout(done, 300));
  }
};
const record = async (name, agent, input) => {
  const { run } = await api('/v1/runs', { agent, input });
  await until(run, 'stopped');
  const res = await fetch(`${server.url}/v1/runs/${run}/recording?form=zip`);
  writeFileSync(join(recordings, name + '.ronda'), Buffer.from(await res.arrayBuffer()));
};

await Promise.all([record('support', 'support', 'Answer case 4821'), record('coach', 'coach', 'Set a squat goal for me that fits my whole year.')]);
await page.goto(server.url + '/#/agents');
await page.getByRole('button', { name: 'Start a run: support' }).click();
await page.getByLabel('Task').fill('Answer case 4812');
await page.getByRole('button', { name: 'Start', exact: true }).click();
await page.waitForFunction(() => document.querySelectorAll('.rows article').length > 6 && document.querySelector('.row.live'));
await shot('run');
await page.waitForSelector('.approval');
await page.goto(server.url + '/#/approvals');
await page.waitForSelector('.approval');
await shot('approval');
await page.goto(server.url + '/#/runs');
await page.waitForSelector('[data-run]');
await shot('runs');
await server.stop();

const docs = await files(root);
await page.goto(docs.url + '/docs/widget.html');
await page.waitForFunction(() => [...document.querySelectorAll('ronda-replay')].every((r) => r.shadowRoot.querySelectorAll('.block').length > 4));
await shot('widget');
docs.stop();
await b.close();
if (b.faults.length) throw new Error(b.faults.join('\n'));
