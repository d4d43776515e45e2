#!/usr/bin/env bash
# Rebuilds the console and the widget and compares them with the committed files. -w writes them. Needs Node 20 or newer; 77: could not be done.
set -euo pipefail
cd "$(dirname "$0")"
command -v npm >/dev/null || { echo "check: not run: npm is missing"; exit 77; }
[ -d node_modules/vite ] || npm ci --no-audit --no-fund --silent || { echo "check: not run: the packages could not be installed"; exit 77; }
out="$(mktemp -d)"
trap 'rm -rf "$out"' EXIT
npx --no-install vite build --outDir "$out" --emptyOutDir --logLevel error
npx --no-install vite build --config vite.widget.ts --outDir "$out" --logLevel error
./wasm.sh "$out"
if [ "${1:-}" = -w ]; then
	rm -rf ../dist && cp -r "$out" ../dist && chmod -R u+rwX,go+rX ../dist
	exit
fi
diff -rq "$out" ../dist || { echo "check: console/dist is not what console/web builds: console/web/check.sh -w"; exit 1; }
