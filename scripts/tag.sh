#!/usr/bin/env bash
# Tags VERSION: one commit in which every module that users import requires the
# others at VERSION, and CHANGELOG.md has the date, and a tag on it for each of
# these modules. Pushes nothing.
#
#   scripts/tag.sh VERSION     such as v0.1.0
#
# It works in a clone, so that a failure changes nothing here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

source scripts/from-tags.sh
path=github.com/weirflow/weir
# The modules that users import, each after those that it requires. The others
# keep their replace directives.
shipped=(. redislimit grpclimit promlimit otellimit fetch cmd/weir)

fail() {
	echo "tag.sh: $*" >&2
	exit 1
}

# tag_of prints the tag of the module in folder $1: Go finds a nested module by
# a tag that begins with its folder.
tag_of() {
	local tag=$1/$version
	echo "${tag#./}"
}

version=${1:-}
[[ $version =~ ^v[01]\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || fail "VERSION is '$version', want one like v0.1.0"
[ -z "$(git status --porcelain)" ] || fail "the working tree has changes; commit them first"
grep -qx "## $version" CHANGELOG.md || fail "CHANGELOG.md has no heading '## $version'"
tags=() refs=()
for module in "${shipped[@]}"; do
	tag=$(tag_of "$module")
	git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null && fail "the tag $tag exists; a tag never moves"
	tags+=("$tag") refs+=("refs/tags/$tag:refs/tags/$tag")
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet --no-tags -c "user.name=$(git config user.name)" -c "user.email=$(git config user.email)" . "$work/weir"

from_tags "$work/weir" "$work/modules"

# ours prints the modules of the project that the module in folder $1 requires.
ours() { go -C "$1" mod edit -print | grep -oE "^(require |	)$path[a-z/]* v" | grep -oE "$path[a-z/]*" || true; }

# raise has the module in folder $1 require the others at VERSION.
raise() {
	local module
	for module in $(ours "$1"); do
		go -C "$1" mod edit -require "$module@$version"
	done
}

# unreplace has the module in folder $1 take the others from their tags. Its
# go.sum then has their hashes.
unreplace() {
	local modules=() module
	for module in $(ours "$1"); do
		go -C "$1" mod edit -dropreplace "$module"
		modules+=("$module@$version")
	done
	[ "${#modules[@]}" -gt 0 ] || return 0
	grep -v "^$path" "$1/go.sum" >"$work/go.sum" # without their earlier versions
	mv "$work/go.sum" "$1/go.sum"
	go -C "$1" get "${modules[@]}"
}

cd "$work/weir"
for mod in $(git ls-files '*go.mod'); do
	raise "$(dirname "$mod")"
done
sed -i "s/^## $version\$/& ($(date --utc +%F))/" CHANGELOG.md
git commit --quiet --all -m "release: $version"
for module in "${shipped[@]}"; do
	unreplace "$module"
	git commit --quiet --all --amend --no-edit
	git tag "$(tag_of "$module")"
done
# A later commit leaves the files of an earlier module as they are, so all tags
# may stand on the last.
for tag in "${tags[@]}"; do
	git tag --force --annotate -m "Weir $version" "$tag" >/dev/null
done

cd - >/dev/null
git fetch --quiet --no-tags "$work/weir" "${refs[@]}"
git merge --quiet --ff-only "$version"
echo "tag.sh: $(git rev-parse --short HEAD) has the tags ${tags[*]}"
echo "tag.sh: nothing is pushed yet; to publish: git push --atomic origin HEAD ${tags[*]}"
