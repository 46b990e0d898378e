#!/usr/bin/env bash
# Signs dist/SHA256SUMS with the secret key in SIGNING_KEY, as `gpg --armor --export-secret-keys` prints it, into
# dist/SHA256SUMS.asc. Without a key it says that nothing is signed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ -f dist/SHA256SUMS ] || {
	echo "sign.sh: dist/SHA256SUMS is missing; run make dist" >&2
	exit 1
}
[ -n "${SIGNING_KEY:-}" ] || {
	echo "sign.sh: SIGNING_KEY is empty, so dist/SHA256SUMS is not signed"
	exit
}
GNUPGHOME=$(mktemp -d)
export GNUPGHOME
trap 'gpgconf --kill gpg-agent; rm -rf "$GNUPGHOME"' EXIT
gpg --batch --quiet --import <<<"$SIGNING_KEY"
gpg --batch --quiet --yes --armor --detach-sign dist/SHA256SUMS
echo "sign.sh: dist/SHA256SUMS.asc"
