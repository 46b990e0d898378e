#!/usr/bin/env bash
# Times weir pace on the real clock: 100 lines at 20/s take 5 s, within 3 %, and
# pass unchanged. The first line passes at once, so the exact time is 99
# intervals of 50 ms: 4.95 s. A very busy machine can fail this check.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/weir" ./cmd/weir

echo '$ seq 100 | weir pace 20/s'
start=$(date +%s%N)
seq 100 | "$work/weir" pace 20/s >"$work/out"
took=$((($(date +%s%N) - start) / 1000000))
seq 100 | cmp - "$work/out"
echo "pace.sh: 100 lines in $took ms"
if [ "$took" -lt 4850 ] || [ "$took" -gt 5150 ]; then
	echo "pace.sh: want 5 s within 3 %: 4850 to 5150 ms" >&2
	exit 1
fi
