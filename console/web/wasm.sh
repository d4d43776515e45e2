#!/usr/bin/env bash
# Builds the loop for the page of time travel: wasm.sh FOLDER writes loop.wasm.gz there. Without inlining it is a tenth smaller.
set -euo pipefail
cd "$(dirname "$0")/../wasm"
out="$(cd "$1" 2>/dev/null || cd "$OLDPWD/$1"; pwd)"
GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 GOFLAGS= go build -buildvcs=false -trimpath -buildmode=c-shared -gcflags=all=-l -ldflags '-s -w -buildid=' -o "$out/loop.wasm" .
gzip -9nf "$out/loop.wasm"
