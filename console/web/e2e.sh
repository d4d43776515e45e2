#!/usr/bin/env bash
# The end-to-end tests of the console in a real Chromium. Where it is missing, Debian's is installed with apt-get; where that cannot be done,
# this says so and ends with 77: nothing was tested.
set -euo pipefail
cd "$(dirname "$0")"
missing() { echo "e2e: not run: $1"; exit 77; }
command -v node >/dev/null && command -v npm >/dev/null || missing "node and npm are needed (Node 20 or newer)"
export CHROMIUM="${CHROMIUM:-/usr/bin/chromium}"
if [ ! -x "$CHROMIUM" ]; then
	command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || missing "no Chromium at $CHROMIUM, and no apt-get to install it with"
	{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1 || missing "Chromium could not be installed"
fi
[ -d node_modules/playwright-core ] || npm ci --no-audit --no-fund --silent || missing "the packages of package-lock.json could not be installed"
if [ -z "${RONDA:-}" ]; then
	RONDA="$(mktemp -d)/ronda"
	trap 'rm -rf "$(dirname "$RONDA")"' EXIT
	(cd ../.. && go build -o "$RONDA" ./cmd/ronda)
fi
export RONDA
npx --no-install vitest run
for test in "${@:-tour tokens scale widget}"; do
	for t in $test; do echo "== e2e $t" && node "e2e/$t.mjs"; done
done
