#!/usr/bin/env bash
# Fails if the subject of a commit is not `package: what it does now` in at most 72 characters. It reads the
# commits after the last one that broke the rule, or as many as the clone holds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

since=5d42380b2b5fe2e613acc9805c85462b772bc9a3
git rev-parse --git-dir >/dev/null 2>&1 || {
	echo "subjects.sh: no git checkout here, so there are no subjects to read"
	exit
}
commits=(HEAD)
! git rev-parse --quiet --verify "$since^{commit}" >/dev/null || commits+=("^$since")
wrong=$(git log --no-merges --format='%h %s' "${commits[@]}" |
	awk '{ subject = substr($0, length($1) + 2) } length(subject) > 72 || subject !~ /^[^ ].*: ./')
[ -z "$wrong" ] || {
	echo "these subjects have no \`package: \`, or more than 72 characters; git commit --amend, or git rebase -i:" >&2
	echo "$wrong" >&2
	exit 1
}
