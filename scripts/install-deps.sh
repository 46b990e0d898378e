#!/usr/bin/env bash
# Installs the programs that the tests need besides Go, and only those that are
# missing. Says what it does. Where it cannot install (no apt, neither root nor
# sudo) it names what to install by hand, and fails.
#
# The list: command, Debian package, why. Later parts of the project add theirs.
set -euo pipefail

needed=(
	"curl  curl      scripts/readme.sh runs the curl line that weir serve prints"
	"gcc   gcc       the race detector links with C"
	"git   git       scripts/readme.sh starts from a fresh clone"
	"pkill procps    scripts/readme.sh stops the program that go run started"
	"redis-server redis-server the tests of redislimit ask real servers"
)

# The C library's headers have no command of their own, so a compiler that
# cannot find them counts as missing.
can_compile() {
	printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | gcc -x c -fsyntax-only - 2>/dev/null
}

if ! command -v go >/dev/null; then
	echo "install-deps: go is missing; install Go 1.26 or later from https://go.dev/dl/" >&2
	exit 1
fi

missing=()
for entry in "${needed[@]}"; do
	read -r command package reason <<<"$entry"
	command -v "$command" >/dev/null && continue
	echo "install-deps: $command is missing: $reason"
	missing+=("$package")
done
if ! can_compile; then
	echo "install-deps: the C headers are missing: the race detector links with C"
	missing+=("gcc" "libc6-dev")
fi
if [ "${#missing[@]}" -eq 0 ]; then
	echo "install-deps: nothing is missing"
	exit 0
fi

by_hand() {
	echo "install-deps: $1; install by hand: ${missing[*]}" >&2
	exit 1
}
command -v apt-get >/dev/null || by_hand "there is no apt-get here"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || by_hand "neither root nor sudo"
	as_root=(sudo)
fi

echo "install-deps: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
