#!/usr/bin/env bash
# Fails if gofmt would change a Go file of the project, and lists the files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

unformatted=$(find . -name '*.go' -not -path '*/testdata/*' -not -path './.git/*' -exec gofmt -l {} +)
if [ -n "$unformatted" ]; then
	echo "gofmt would change these files; run gofmt -w on them:" >&2
	echo "$unformatted" >&2
	exit 1
fi
