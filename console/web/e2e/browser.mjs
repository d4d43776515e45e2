// A headless Chromium for tests and pictures. CHROMIUM names another program than Debian's.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--force-color-profile=srgb'];

/** Opens a browser with an empty profile. Every page reports what the policy of the page refused and what failed in it. */
export async function open(options = {}) {
  const profile = mkdtempSync(join(tmpdir(), 'ronda-e2e-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, args, viewport: { width: 1280, height: 860 }, locale: 'en-GB', ...options,
  });
  const faults = [];
  const watch = (page) => {
    page.on('console', (m) => {
      if (m.type() === 'error' || /Content.Security.Policy|TrustedHTML/i.test(m.text())) faults.push(`${m.type()}: ${m.text()}`);
    });
    page.on('pageerror', (e) => faults.push(`error: ${e.stack ?? e}`));
  };
  context.pages().forEach(watch);
  context.on('page', watch);
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (e) => console.error(`Content Security Policy: ${e.violatedDirective} ${e.blockedURI} ${e.sample}`));
  });
  return {
    context, faults,
    page: context.pages()[0] ?? (await context.newPage()),
    async close() {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}
