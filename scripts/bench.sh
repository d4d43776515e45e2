#!/usr/bin/env bash
# Side by side, interleaved: ronda and the floors against the mock server. RONDA_BENCH is the folder that holds mock/ and go/floor
# (default ../shared/bench). Prints medians of CPU µs a round and their ratio to the spliced floor.
set -euo pipefail
cd "$(dirname "$0")/.."
kit=${RONDA_BENCH:-../shared/bench}
if [ ! -d "$kit/mock" ]; then
	echo "bench: $kit/mock is missing: the mock server and the floors are not part of this repository. Set RONDA_BENCH"
	exit 0
fi
passes=${PASSES:-5}
out=$(mktemp -d)
trap 'kill $(cat "$out/pid" 2>/dev/null) 2>/dev/null || true; rm -rf "$out"' EXIT
(cd "$kit/mock" && go build -o "$out/mock" .)
(cd "$kit/go/floor" && go build -o "$out/floor" .)
(cd bench && go build -o "$out/ronda" ./ronda)
"$out/mock" -quiet >"$out/url" &
echo $! >"$out/pid"
for _ in $(seq 50); do [ -s "$out/url" ] && break; sleep 0.1; done
url=$(head -n1 "$out/url")
line() { # label, then the command
	local label=$1
	shift
	"$@" | sed "s/^{/{\"label\":\"$label\",/" >>"$out/lines"
}
for _ in $(seq "$passes"); do
	for r in 10 50 200; do
		n=$((2000 / r))
		line "splice r$r" env FLOOR=splice "$out/floor" --base-url "$url" --rounds $r --runs $n --warmup 3
		line "floor r$r" "$out/floor" --base-url "$url" --rounds $r --runs $n --warmup 3
		for p in openai-chat openai-responses anthropic gemini; do
			line "ronda $p r$r" "$out/ronda" --provider $p --base-url "$url" --rounds $r --runs $n --warmup 3
		done
		line "ronda openai-chat stream r$r" "$out/ronda" --stream --base-url "$url" --rounds $r --runs $n --warmup 3
		line "ronda sqlite full r$r" env DURABILITY=full "$out/ronda" --base-url "$url" --rounds $r --runs $n --concurrency 32 --warmup 3 --durable "$out/full-$r-$RANDOM.db"
		line "ronda sqlite normal r$r" env DURABILITY=normal "$out/ronda" --base-url "$url" --rounds $r --runs $n --concurrency 32 --warmup 3 --durable "$out/normal-$r-$RANDOM.db"
	done
	line "ronda 256 at once r10" "$out/ronda" --base-url "$url" --rounds 10 --runs 1000 --concurrency 256 --warmup 3
	line "ronda 256 at once sqlite r10" "$out/ronda" --base-url "$url" --rounds 10 --runs 1000 --concurrency 256 --warmup 3 --durable "$out/many-$RANDOM.db"
	line "ronda 1000 paused sqlite r1" "$out/ronda" --mode pause --base-url "$url" --rounds 1 --runs 1000 --concurrency 16 --durable "$out/pause-$RANDOM.db"
done
(cd bench && go run ./table "$out/lines")
