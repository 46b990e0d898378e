#!/usr/bin/env bash
# Runs one stage of `make test` or `make ci`. It prints a line when the stage begins, and one
# with its result and time when it ends.
#
#   scripts/stage.sh NAME COMMAND…   run COMMAND; exit with its status
#   scripts/stage.sh --begin         start the clock of the whole run
#   scripts/stage.sh --total         print that all stages passed, and their time
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

stamp="${TMPDIR:-/tmp}/weir-stages.$(id -u).$(cksum <<<"$PWD" | cut -d ' ' -f 1)"

case "$1" in
--begin)
	date +%s >"$stamp"
	exit
	;;
--total)
	echo "==> all stages passed in $(($(date +%s) - $(cat "$stamp"))) s"
	rm -f "$stamp"
	exit
	;;
esac

name=$1
shift
echo "==> $name"
start=$(date +%s)
status=0
"$@" || status=$?
took=$(($(date +%s) - start))
if [ "$status" -ne 0 ]; then
	echo "==> $name FAILED after $took s (exit $status): $*" >&2
	exit "$status"
fi
echo "==> $name ok in $took s"
