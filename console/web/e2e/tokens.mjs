// A server that wants tokens: the form, a wrong token, a viewer who may look and not decide, where the token is kept.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { axe } from './axe.mjs';
import { open } from './browser.mjs';
import { check, end, same } from './check.mjs';
import { serve } from './server.mjs';

const folder = mkdtempSync(join(tmpdir(), 'ronda-tokens-'));
Object.assign(process.env, { RONDA_STORE: join(folder, 'ronda.db'), RONDA_SUPPORT_DB: join(folder, 'support.db'), RONDA_COACH_DB: join(folder, 'coach.db') });
const ronda = (...args) => {
  try {
    return execFileSync(process.env.RONDA ?? 'ronda', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch (err) {
    if (err.status === 3) return err.stdout; // it waits
    throw err;
  }
};
const token = (role, name) => ronda('token', 'create', '--role', role, '--name', name);
const tokens = { vera: token('viewer', 'vera'), ana: token('approver', 'ana') };
ronda('run', 'support', 'Answer case 4812', '--scripted');
const server = await serve('--scripted');
const b = await open();
const page = b.page;
page.setDefaultTimeout(20_000);
const signIn = async (t) => {
  await page.waitForSelector('input[type=password]');
  await page.getByLabel('Token').fill(t);
  await page.getByRole('button', { name: 'Sign in' }).click();
};

await page.goto(server.url + '/#/approvals');
await page.waitForSelector('input[type=password]');
await axe(page, 'sign in');
await signIn('ronda_wrong');
await page.waitForSelector('[role=alert]');
await axe(page, 'sign in, refused');
await signIn(tokens.vera);
await page.waitForSelector('.approval');
same('a viewer is offered no decision', await page.locator('.approval button').count(), 0);
await page.keyboard.press('a');
same('nor by a key', await page.locator('dialog[open]').count(), 0);
await axe(page, 'approvals, as a viewer');
same('the token is kept for the tab only', await page.evaluate((t) => [Object.values({ ...localStorage }).includes(t), document.cookie, location.href.includes(t), sessionStorage.getItem('ronda.token') === t], tokens.vera), [false, '', false, true]);
await page.getByRole('button', { name: 'Sign out' }).click();
await signIn(tokens.ana);
await page.waitForSelector('.approval button');
await page.keyboard.press('x');
await page.getByLabel('Message to the model').fill('Not today.');
await page.keyboard.press('Control+Enter');
await page.waitForFunction(() => !document.querySelector('.approval'));
const auth = { headers: { Authorization: `Bearer ${tokens.vera}` } };
const run = (await (await fetch(server.url + '/v1/runs', auth)).json()).runs[0].run;
const decided = (await (await fetch(`${server.url}/v1/runs/${run}/events`, auth)).json()).events.find((e) => e.k === 'ApprovalDecided');
same('who decided is who the token says', [decided.b.decision, decided.b.by, decided.b.message], ['reject', 'ana', 'Not today.']);
check('the policy refused nothing', b.faults.filter((f) => !/status of 401/.test(f)).length === 0, b.faults.join('\n'));
await server.stop();
await b.close();
rmSync(folder, { recursive: true });
end();
