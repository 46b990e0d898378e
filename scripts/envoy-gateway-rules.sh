#!/usr/bin/env bash
# The rules that Envoy Gateway's own tests expect of it, pushed to the real
# envoyproxy/ratelimit and to Weir: both answer 1,000 random calls on each of
# them. Neither module is a requirement of one of ours.
set -euo pipefail
cd "$(dirname "$0")/.."

gateway=github.com/envoyproxy/gateway@v1.9.1
ratelimit=github.com/envoyproxy/ratelimit@v1.4.1-0.20260122083618-3fb702589d36

work=${XDG_CACHE_HOME:-$HOME/.cache}/weir/ratelimit-${ratelimit##*-}
if [ ! -x "$work/ratelimit" ]; then
	rm -rf "$work"
	mkdir -p "$work"
	(
		cd "$work"
		export GOWORK=off GOFLAGS=-mod=mod
		go mod init ratelimit.test
		go get "$ratelimit"
		go build -o ratelimit github.com/envoyproxy/ratelimit/src/service_cmd
	)
fi
module=$(cd "$work" && GOWORK=off go mod download -json "$gateway" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
[ -d "$module" ] || { echo "envoy-gateway-rules.sh: $gateway was not downloaded" >&2; exit 1; }

WEIR_ENVOY_GATEWAY=$module WEIR_RATELIMIT=$work/ratelimit \
	go test -count=1 -run TestConfigurationsOfEnvoyGatewayAreAnsweredAsByTheOriginal -v ./cmd/weir/internal/serve
WEIR_LONG=1 go test -count=1 -run TestEnvoyOfEnvoyGatewayIsLimitedByPushedRules -v ./cmd/weir/internal/serve
