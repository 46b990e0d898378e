# Sourced by scripts. from_tags REPOSITORY CACHE has the Go tool fetch our modules
# from the tags of a repository here, as if they were public, into a cache that is
# deleted afterwards. It takes all others from the cache of this machine.
from_tags() {
	export GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
	export GOMODCACHE=$2 GOFLAGS=-modcacherw GOWORK=off GOPRIVATE=github.com/weirflow/weir
	export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.file://$1.insteadOf GIT_CONFIG_VALUE_0=https://$GOPRIVATE
}
