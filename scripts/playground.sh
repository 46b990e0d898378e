#!/usr/bin/env bash
# Builds the page "Try it" into a folder, which any web server can serve: the files of site/playground, what all our pages share, and
# the program, compressed. weir playground DIR serves it on loopback.
#
#   scripts/playground.sh DIR
set -euo pipefail
[ $# = 1 ] || {
	echo "usage: scripts/playground.sh DIR" >&2
	exit 2
}
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
most=3000000 # bytes of the program, compressed

shared=cmd/weir/internal/page/assets
cp site/playground/* "$out"
cat "$shared/uPlot.min.css" "$shared/page.css" >"$out/page.css"
cat "$shared/uPlot.iife.min.js" "$shared/chart.js" "$shared/table.js" >"$out/page.js"
cp "$shared/uPlot.LICENSE" "$out/uPlot.LICENSE"
cp "$(go env GOROOT)/lib/wasm/wasm_exec.js" "$out"
GOOS=js GOARCH=wasm go build -C cmd/weir -trimpath -buildvcs=false -ldflags '-s -w -buildid=' -o "$out/weir.wasm" ./playground
gzip --no-name --best --force "$out/weir.wasm"
chmod 644 "$out/weir.wasm.gz"
size=$(wc -c <"$out/weir.wasm.gz")
echo "playground.sh: $out: the program has $size bytes, compressed"
[ "$size" -le "$most" ] || {
	echo "playground.sh: want $most bytes at most" >&2
	exit 1
}
