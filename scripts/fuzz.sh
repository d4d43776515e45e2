#!/usr/bin/env bash
# Runs every fuzz target of the module for a while each: scripts/fuzz.sh 10s
set -euo pipefail
time=${1:-10s}
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
	for target in $(grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/^func //' | sort -u); do
		echo "fuzz $dir $target $time"
		go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" >/tmp/ronda-fuzz.$$ 2>&1 || { cat /tmp/ronda-fuzz.$$; exit 1; }
	done
done
rm -f /tmp/ronda-fuzz.$$
