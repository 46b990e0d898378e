#!/usr/bin/env bash
# Fuzzes every Fuzz function of every module of go.work, one package on each processor.
#
#   scripts/fuzz.sh [TIME]     TIME for each target, as go test -fuzztime takes it; default 1s
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export fuzztime=${1:-1s}
programs=$(mktemp -d)
export programs
trap 'rm -rf "$programs"' EXIT

# Source text names the targets: go test -list would first build all tests of all packages.
files=$(grep -rl --include='*_test.go' '^func Fuzz' . || true)
if [ -z "$files" ]; then
	echo "fuzz.sh: no fuzz target found" >&2
	exit 1
fi

# package builds the tests of one folder once, and fuzzes its targets.
package() {
	local folder=$1 name program target failed=0
	name=$(go list "$folder") || return 1
	program=$programs/${name//\//.}.test
	go test -vet=off -c -fuzz . -o "$program" "$name" || return 1
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$folder"/*_test.go); do
		fuzz "$folder" "$name" "$program" "$target" || failed=1
	done
	return $failed
}

# fuzz runs one target. Go sometimes ends a run without a failure with "context
# deadline exceeded" (golang/go#75804, fixed in Go 1.27). A real failure names
# the file of the failing input. By default Go spends up to a minute on each new
# input to make it smaller, which leaves no time for others: 5 runs of
# FuzzLoadMemory in a minute, instead of 3000 a second.
#
# The beginning and the end of a run use one processor, so one worker for each of
# several targets is quicker than several workers for one.
fuzz() {
	local folder=$1 name=$2 program=$3 target=$4 output heading
	heading="--- $target in $name for $fuzztime"
	if output=$(cd "$folder" && "$program" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$fuzztime" \
		-test.fuzzminimizetime 100x -test.parallel 1 -test.fuzzcachedir "$(go env GOCACHE)/fuzz/$name" 2>&1); then
		echo "$heading
$output"
	elif grep -q '^    context deadline exceeded$' <<<"$output" && ! grep -q 'Failing input written' <<<"$output"; then
		echo "$heading
$(grep -v -e '^FAIL' -e '^--- FAIL' -e '^exit status' <<<"$output")
fuzz.sh: the run hit golang/go#75804 at its end; no input failed"
	else
		echo "$heading
$output"
		return 1
	fi
}

export -f package fuzz
xargs -n 1 dirname <<<"$files" | sort -u | xargs -n 1 -P "$(getconf _NPROCESSORS_ONLN)" bash -c 'package "$1"' fuzz
