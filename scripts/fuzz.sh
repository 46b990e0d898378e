#!/usr/bin/env bash
# Fuzzes every Fuzz function of every module of go.work, one on each processor.
#
#   scripts/fuzz.sh [TIME]     TIME for each target, as go test -fuzztime takes it; default 1s
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fuzztime=${1:-1s}
listing=$(go test -list '^Fuzz' work) || {
	echo "fuzz.sh: cannot list the fuzz targets:" >&2
	echo "$listing" >&2
	exit 1
}

# go test -list prints the functions of a package, then a line that names it.
targets=$(awk '/^Fuzz/ { names[n++] = $1 }
	$1 == "ok" { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }' <<<"$listing")
if [ -z "$targets" ]; then
	echo "fuzz.sh: no fuzz target found" >&2
	exit 1
fi

# fuzz runs one target. Go sometimes ends a run without a failure with "context
# deadline exceeded" (golang/go#75804, fixed in Go 1.27). A real failure names
# the file of the failing input. By default Go spends up to a minute on each new
# input to make it smaller, which leaves no time for others: 5 runs of
# FuzzLoadMemory in a minute, instead of 3000 a second.
#
# The beginning and the end of a run use one processor, so one worker for each of
# several targets is quicker than several workers for one.
fuzz() {
	local output
	if output=$(go test -run '^$' -fuzz "^$2\$" -fuzztime "$fuzztime" -fuzzminimizetime 100x -parallel 1 "$1" 2>&1); then
		echo "--- $2 in $1 for $fuzztime
$output"
	elif grep -q '^    context deadline exceeded$' <<<"$output" && ! grep -q 'Failing input written' <<<"$output"; then
		echo "--- $2 in $1 for $fuzztime
$(grep -v -e '^FAIL' -e '^--- FAIL' -e '^exit status' <<<"$output")
fuzz.sh: the run hit golang/go#75804 at its end; no input failed"
	else
		echo "--- $2 in $1 for $fuzztime
$output"
		return 1
	fi
}

export fuzztime
export -f fuzz
xargs -n 2 -P "$(getconf _NPROCESSORS_ONLN)" bash -c 'fuzz "$@"' fuzz <<<"$targets"
