#!/usr/bin/env bash
# Writes the modules of a tagged version into a folder from which the Go tool
# installs them: GOPROXY=file://FOLDER.
#
#   scripts/modules.sh VERSION FOLDER
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/from-tags.sh

version=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

modules=()
for tag in $(git tag --points-at "$version^{commit}"); do
	module=github.com/weirflow/weir/${tag%"$version"}
	modules+=("${module%/}@$version")
done
from_tags "$PWD" "$work"
cd "$work"
go mod download "${modules[@]}"
cp -R cache/download/. "$folder"
