// A small ledger of checks: a test goes on after a failure, so that one run tells all of them.
let failed = 0;
let passed = 0;

export function check(what, ok, detail = '') {
  if (ok) passed++;
  else {
    failed++;
    console.error(`FAIL ${what}${detail ? ': ' + detail : ''}`);
  }
}

export const same = (what, got, want) => check(what, JSON.stringify(got) === JSON.stringify(want), `got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);

export function end() {
  console.log(`e2e: ${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}
