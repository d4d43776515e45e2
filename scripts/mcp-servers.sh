#!/bin/sh
# Installs the public MCP servers that the tests of tool/mcp start, into a folder (default: .tools/mcp-servers). Needs npm; ends
# with 77 where there is none. Afterwards: go test ./tool/mcp, or RONDA_MCP_SERVERS=FOLDER go test ./tool/mcp
set -eu
version=2026.8.31
dir=${1:-"$(dirname "$0")/../.tools/mcp-servers"}
if ! command -v npm >/dev/null 2>&1; then
	echo "mcp-servers: npm is not installed; the tests against the public servers will be skipped" >&2
	exit 77
fi
mkdir -p "$dir"
cd "$dir"
[ -f package.json ] || echo '{"private": true}' >package.json
npm install --ignore-scripts --no-audit --no-fund --loglevel=error \
	"@modelcontextprotocol/server-everything@$version" \
	"@modelcontextprotocol/server-filesystem@$version" \
	"@modelcontextprotocol/server-memory@$version"
echo "mcp-servers: $(pwd)"
