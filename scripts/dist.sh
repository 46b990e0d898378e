#!/usr/bin/env bash
# Builds what a version ships from the last commit, into dist: an archive with the
# program for each platform and its list of components, deb, rpm and a container
# image for Linux, and checksums. Equal commits and Go versions give equal bytes,
# whatever the machine and the folder. It needs GNU tar.
#
#   scripts/dist.sh NFPM CYCLONEDX CRANE     tools and their versions, for go install
#   scripts/dist.sh --image CRANE            the image alone, for the Linux platforms
#
# PLATFORMS holds the platforms, like "linux/amd64 windows/arm64".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/from-tags.sh

most=60000000 # bytes of a program
image_alone=
if [ "$1" = --image ]; then
	image_alone=yes
	shift
fi

fail() {
	echo "dist.sh: $*" >&2
	exit 1
}

work=$(mktemp -d)
registry=
trap '[ -z "$registry" ] || kill "$registry"; rm -rf "$work"' EXIT
tools=$work/tools
for tool in "$@"; do
	GOBIN=$tools CGO_ENABLED=0 go install -trimpath -buildvcs=false "$tool"
done

[ -z "$(git status --porcelain)" ] || echo "dist.sh: uncommitted changes are not in it" >&2
git clone --quiet . "$work/weir"
out=$PWD/dist
if [ -n "$image_alone" ]; then
	rm -f "$out"/weir_*_image.tar
else
	rm -rf "$out"
fi
mkdir -p "$out"
cd "$work/weir"

# What is outside the commit decides no byte.
umask 022
export LC_ALL=C SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
from_tags "$work/weir" "$work/modules"
export CGO_ENABLED=0 GOTOOLCHAIN=local GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= GOFIPS140=off

# compile builds a package of the program for this machine, or for GOOS and GOARCH.
# grpcnotrace leaves out the pages of grpc-go, and with them a third of the program.
compile() { go build -C cmd/weir -trimpath -buildvcs=true -tags grpcnotrace -ldflags '-s -w -buildid=' -o "$1" "$2"; }

# pack writes the files of a folder into an archive.
pack() {
	tar --create --directory "$1" --sort name --mtime "@$SOURCE_DATE_EPOCH" --owner 0 --group 0 --numeric-owner --format gnu . |
		gzip --no-name --best >"$2"
}

compile "$work/host" .
read -r _ version _ < <("$work/host" version)
case $version in *dirty*) fail "building changes files of the clone: $version" ;; esac
shipped=$work/shipped
compile "$work/shipper" ./internal/packaging
"$work/shipper" "$shipped" "$version"
cp LICENSE "$shipped"
[ -n "$image_alone" ] || scripts/playground.sh "$shipped/playground" # for weir playground

# build builds the program for a platform.
build() {
	local built=$work/$1-$2/$3 size
	mkdir "$work/$1-$2"
	GOOS=$1 GOARCH=$2 compile "$built" .
	size=$(stat --format %s "$built")
	echo "dist.sh: weir_${version}_$1_$2: $size bytes"
	[ "$size" -le "$most" ] || fail "the program for $1/$2 has $size bytes, want at most $most"
}

# program builds an archive, and the list of the components in the program.
program() {
	local built=$work/$1-$2 program=weir name=weir_${version}_$1_$2
	[ "$1" != windows ] || program=weir.exe
	build "$1" "$2" "$program"
	"$tools/cyclonedx-gomod" bin -json -std -noserial -version "$version" "$built/$program" 2>/dev/null |
		sed -E "s/(\"timestamp\": \")[^\"]*/\1$(date --utc --date "@$SOURCE_DATE_EPOCH" +%FT%TZ)/" >"$out/$name.cdx.json"
	cp -R "$shipped/." "$built"
	rm "$built/ca-certificates.crt"
	pack "$built" "$out/$name.tar.gz"
}

# packages builds the deb and the rpm for an architecture.
packages() {
	local kind
	for kind in deb rpm; do
		ARCH=$1 VERSION=$version BUILT=$work/linux-$1 SHIPPED=$shipped \
			"$tools/nfpm" package --config deploy/packages/nfpm.yaml --packager "$kind" --target "$out"
	done
}

# layer puts an image of one architecture into the registry: the program, with
# the name under which it stands in the place of envoyproxy/ratelimit, too, the
# certificates of public authorities, and nothing else.
layer() {
	local root=$work/image-$1
	mkdir -p "$root/bin" "$root/etc/ssl/certs"
	cp "$work/linux-$1/weir" "$root/bin"
	ln -s weir "$root/bin/ratelimit"
	cp "$shipped/ca-certificates.crt" "$root/etc/ssl/certs"
	pack "$root" "$root.tar.gz"
	"$tools/crane" append --oci-empty-base --new_layer "$root.tar.gz" --new_tag "$2"
	"$tools/crane" mutate "$2" --tag "$2" --set-platform "linux/$1" --entrypoint /bin/weir --user 65532:65532 --exposed-ports 8080/tcp \
		--label "org.opencontainers.image.version=$version" --label org.opencontainers.image.licenses=Apache-2.0 \
		--label org.opencontainers.image.source=https://github.com/weirflow/weir
}

# image writes the images of the given architectures as one archive of an OCI layout.
image() {
	local address arch manifests=()
	mkdir "$work/blobs"
	"$tools/crane" registry serve --address 127.0.0.1:0 --disk "$work/blobs" 2>"$work/registry.log" &
	registry=$!
	until address=$(grep -oE 'serving on port [0-9]+' "$work/registry.log"); do
		kill -0 "$registry" || fail "the registry ended: $(<"$work/registry.log")"
		sleep 0.1
	done
	address=127.0.0.1:${address##* }
	for arch in "$@"; do
		layer "$arch" "$address/weir:$arch"
		manifests+=(--manifest "$address/weir:$arch")
	done
	"$tools/crane" index append "${manifests[@]}" --tag "$address/weir:latest"
	"$tools/crane" pull --format oci "$address/weir:latest" "$work/layout"
	tar --create --directory "$work/layout" --sort name --mtime "@$SOURCE_DATE_EPOCH" --owner 0 --group 0 --numeric-owner --format gnu \
		--file "$out/weir_${version}_image.tar" .
}

gzip --no-name --best "$shipped"/man/*
linux=()
for platform in $PLATFORMS; do
	[ "${platform%/*}" != linux ] || linux+=("${platform#*/}")
	if [ -z "$image_alone" ]; then
		program "${platform%/*}" "${platform#*/}"
	elif [ "${platform%/*}" = linux ]; then
		build linux "${platform#*/}" weir
	fi
done
find "$shipped" "$work"/linux-* deploy -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
if [ -z "$image_alone" ]; then
	for arch in "${linux[@]}"; do
		packages "$arch"
	done
fi
[ "${#linux[@]}" -eq 0 ] || image "${linux[@]}" 2>"$work/image.log" || fail "the image: $(<"$work/image.log")"
if [ -n "$image_alone" ]; then
	echo "dist.sh: dist/weir_${version}_image.tar"
	exit
fi
cd "$out"
sha256sum -- * >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" .
echo "dist.sh: $(wc -l <SHA256SUMS) files of $version in dist, and SHA256SUMS"
