#!/usr/bin/env bash
# Runs the release of VERSION into a new folder, and installs the program from it
# as users do. It sets no tag here, and pushes nothing.
#
#   scripts/release-dry.sh VERSION FOLDER
#
# FOLDER/weir is then the tagged repository, FOLDER/modules what the module proxy
# will have, FOLDER/dist what users download, and FOLDER/bin/weir the program that
# `go install` made of the modules. PLATFORMS holds the platforms of dist.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
	echo "release-dry.sh: $*" >&2
	exit 1
}

version=${1:-} folder=${2:-}
[ -n "$version" ] && [ -n "$folder" ] || fail "VERSION or FOLDER is missing; run make release-dry VERSION=v0.1.0 FOLDER=/tmp/release"
mkdir "$folder" 2>/dev/null || fail "FOLDER $folder cannot be made, or exists; name a new one"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

git clone --quiet --no-tags -c "user.name=$(git config user.name)" -c "user.email=$(git config user.email)" . "$folder/weir"
cd "$folder/weir"
scripts/tag.sh "$version"
make --no-print-directory dist PLATFORMS="$PLATFORMS"
make --no-print-directory sign
mv dist "$folder"
scripts/modules.sh "$version" "$folder/modules"

cd "$work"
others=file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
GOWORK=off GOFLAGS=-modcacherw GONOSUMDB=* GOPROXY=file://$folder/modules,$others GOMODCACHE=$work/cache GOBIN=$folder/bin \
	go install -trimpath "github.com/weirflow/weir/cmd/weir@$version"
said=$("$folder/bin/weir" version)
[[ $said == "weir $version "* ]] || fail "the installed program says that it is $said, want $version"
echo "release-dry.sh: $(head -1 <<<"$said") is installed from $folder/modules"
