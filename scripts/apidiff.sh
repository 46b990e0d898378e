#!/usr/bin/env bash
# Compares the API of each module that users import with the last tag, and fails
# if a change breaks their programs. It passes while there is no tag.
#
#   scripts/apidiff.sh TOOL    apidiff and its version, as go install takes them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

last=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null) || {
	echo "apidiff.sh: no version is tagged yet, so there is no API to compare with"
	exit
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git -c advice.detachedHead=false clone --quiet --branch "$last" . "$work/weir"
GOBIN=$work go install "$1"

# apidiff runs the tool on the module of a folder: those of the workspace that lie
# in the root's folder are not part of the root.
apidiff() {
	local folder=$1
	shift
	cd "$folder"
	[ "$module" != github.com/weirflow/weir ] || export GOWORK=off
	"$work/apidiff" -m "$@" 2> >(grep -v '^Ignoring internal package' >&2)
}

broken=
for tag in $(git tag --points-at "$last^{commit}"); do
	folder=${tag%"$last"} # redislimit/, or nothing for the root
	[ "$folder" != cmd/weir/ ] || continue # it is a program
	module=github.com/weirflow/weir${folder:+/${folder%/}}
	(apidiff "$work/weir/$folder" -w "$work/api" "$module")
	changes=$(apidiff "./$folder" "$work/api" "$module")
	echo "$module since $last: ${changes:-no change}"
	! grep -q '^Incompatible changes:' <<<"$changes" || broken+=" $module"
done
[ -z "$broken" ] || {
	echo "apidiff.sh: changes since $last break programs that use$broken" >&2
	exit 1
}
