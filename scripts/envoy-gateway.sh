#!/usr/bin/env bash
# Envoy Gateway itself, with its file provider and Envoy as a process of the
# host, and Weir in the place of its rate limit service: called as ratelimit,
# with the variables of the pod. A policy is edited while requests run, and the
# limits follow.
#
# Envoy Gateway has fixed ports, a fixed folder of certificates, and a name for
# the service that no host knows. So everything runs in namespaces of its own:
# its network is a loopback interface, and it ends with the script.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=1.9.1
envoy_version=1.40.0
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir
gateway=$cache/envoy-gateway-$version
url=http://127.0.0.1:8888/

step() { echo "envoy-gateway.sh: $*"; }

fail() {
	echo "envoy-gateway.sh: $*" >&2
	for log in "$work"/*.log; do
		[ -e "$log" ] || continue
		echo "--- end of $(basename "$log"):" >&2
		tail -n 20 "$log" | cut -c 1-500 >&2
	done
	exit 1
}

# build needs the network, so it comes first. The module is no requirement of
# one of ours: it is built in its folder, with its own go.sum.
build() {
	if [ ! -x "$gateway" ]; then
		step "building Envoy Gateway $version: 239 MB, minutes"
		local module
		module=$(cd "$work" && GOWORK=off go mod download -json "github.com/envoyproxy/gateway@v$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
		[ -d "$module" ] || fail "the module was not downloaded"
		mkdir -p "$cache"
		GOWORK=off GOFLAGS='-mod=readonly -trimpath -buildvcs=false' go build -C "$module" -ldflags '-s -w' -o "$gateway" ./cmd/envoy-gateway
	fi
	go build -o "$work/ratelimit" ./cmd/weir
}

# write_files writes the configuration of Envoy Gateway, and the objects of a
# gateway with one route, which has no host names: then a key that is pushed
# ends with a star.
write_files() {
	local programs=$work/data/envoy-versions/$envoy_version/bin
	mkdir -p "$programs" "$work"/{config,state,runtime,objects,site,root}
	ln -s "$(realpath "${ENVOY:-$cache/envoy-$envoy_version}")" "$programs/envoy"
	echo 'page' >"$work/site/index.html"
	echo '127.0.0.1 localhost envoy-gateway envoy-ratelimit.envoy-gateway-system.svc.cluster.local' >"$work/hosts"
	cat >"$work/gateway.yaml" <<-END
		apiVersion: gateway.envoyproxy.io/v1alpha1
		kind: EnvoyGateway
		gateway: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
		provider:
		  type: Custom
		  custom:
		    resource: {type: File, file: {paths: ["$work/objects"]}}
		    infrastructure:
		      type: Host
		      host: {configHome: "$work/config", dataHome: "$work/data", stateHome: "$work/state", runtimeDir: "$work/runtime"}
		extensionApis: {enableBackend: true}
		rateLimit:
		  timeout: 5s # a busy machine is no fault: Envoy lets a request pass after it
		  backend: {type: Redis, redis: {url: "redis://127.0.0.1:6379"}}
	END
	cat >"$work/objects/gateway.yaml" <<-END
		apiVersion: gateway.networking.k8s.io/v1
		kind: GatewayClass
		metadata: {name: eg}
		spec:
		  controllerName: gateway.envoyproxy.io/gatewayclass-controller
		  parametersRef: {group: gateway.envoyproxy.io, kind: EnvoyProxy, name: host, namespace: default}
		---
		apiVersion: gateway.envoyproxy.io/v1alpha1
		kind: EnvoyProxy
		metadata: {name: host, namespace: default}
		spec: {provider: {type: Host, host: {envoyVersion: $envoy_version}}, telemetry: {accessLog: {disable: true}}}
		---
		apiVersion: gateway.networking.k8s.io/v1
		kind: Gateway
		metadata: {name: eg, namespace: default}
		spec: {gatewayClassName: eg, listeners: [{name: http, protocol: HTTP, port: 8888}]}
		---
		apiVersion: gateway.envoyproxy.io/v1alpha1
		kind: Backend
		metadata: {name: backend, namespace: default}
		spec: {endpoints: [{ip: {address: 127.0.0.1, port: 3000}}]}
		---
		apiVersion: gateway.networking.k8s.io/v1
		kind: HTTPRoute
		metadata: {name: backend, namespace: default}
		spec:
		  parentRefs: [{name: eg}]
		  rules: [{backendRefs: [{group: gateway.envoyproxy.io, kind: Backend, name: backend}]}]
	END
	write_policy 3
}

# write_policy gives each tenant so many requests a year, which does not end
# while the script runs.
write_policy() {
	cat >"$work/policy" <<-END
		apiVersion: gateway.envoyproxy.io/v1alpha1
		kind: BackendTrafficPolicy
		metadata: {name: budget, namespace: default}
		spec:
		  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: backend}]
		  rateLimit:
		    type: Global
		    global:
		      rules: [{clientSelectors: [{headers: [{name: x-tenant, type: Distinct}]}], limit: {requests: $1, unit: Year}}]
	END
	mv "$work/policy" "$work/objects/policy.yaml"
}

# enter_root makes a root folder like that of the host, where the certificates
# of the service are in /certs, and where its name is known.
enter_root() {
	ip link set lo up
	mount -t tmpfs tmpfs "$work/root"
	local entry
	for entry in /*; do
		[ "$entry" != /certs ] || continue
		if [ -L "$entry" ]; then
			cp -P "$entry" "$work/root/"
		elif [ -d "$entry" ]; then
			mkdir "$work/root$entry"
			mount --rbind "$entry" "$work/root$entry"
		fi
	done
	mkdir "$work/root/certs"
	mount --bind "$work/config/certs/envoy-rate-limit" "$work/root/certs"
	mount --bind "$work/hosts" "$work/root/etc/hosts"
}

# start runs a program in the background, with its output in a log.
start() {
	local name=$1
	shift
	"$@" >"$work/$name.log" 2>&1 &
}

# start_service runs Weir with the variables that Envoy Gateway gives the pod.
# The deadline is beside them, because the machine may be busy.
start_service() {
	local tls='/certs/tls.crt' key='/certs/tls.key' ca='/certs/ca.crt'
	start weir env -i PATH="$PATH" HOME="$work/state" XDG_RUNTIME_DIR="$work/state" \
		RUNTIME_ROOT=/data RUNTIME_SUBDIRECTORY=ratelimit RUNTIME_IGNOREDOTFILES=true RUNTIME_WATCH_ROOT=false LOG_LEVEL=info USE_STATSD=false \
		CONFIG_TYPE=GRPC_XDS_SOTW CONFIG_GRPC_XDS_SERVER_URL=envoy-gateway:18001 CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit \
		GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_CERT=$tls GRPC_SERVER_TLS_KEY=$key GRPC_SERVER_TLS_CA_CERT=$ca \
		CONFIG_GRPC_XDS_SERVER_USE_TLS=true CONFIG_GRPC_XDS_CLIENT_TLS_CERT=$tls CONFIG_GRPC_XDS_CLIENT_TLS_KEY=$key CONFIG_GRPC_XDS_SERVER_TLS_CACERT=$ca \
		FORCE_START_WITHOUT_INITIAL_CONFIG=true REDIS_SOCKET_TYPE=tcp REDIS_URL=redis://127.0.0.1:6379 \
		WEIR_DEADLINE=4s "$work/ratelimit"
}

# ask prints the status and the limit that one request of a tenant is told.
ask() { curl -s -o "$work/body" -m 10 -H "x-tenant: $1" -w '%{http_code} %header{x-ratelimit-limit}\n' "$url" | sed 's/,.*//'; }

# within waits for a command to succeed.
within() {
	local end=$((SECONDS + 120)) what=$1
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || fail "after 120 s still not: $what"
		sleep 0.2
	done
}

# Each question has a tenant of its own, so it uses up nobody's limit.
questions=0
is_told() {
	questions=$((questions + 1))
	[ "$(ask "question-$questions")" = "200 $1" ]
}

# want sends requests of one tenant, and compares their statuses.
want() {
	local tenant=$1 statuses=$2 got='' status _
	for _ in $statuses; do
		read -r status _ < <(ask "$tenant")
		got="$got${got:+ }$status"
	done
	[ "$got" = "$statuses" ] || fail "$tenant got $got, want $statuses"
	step "  $tenant: $got"
}

# run_requests sends requests, each of another tenant, until it is stopped.
run_requests() {
	local n=0
	while [ ! -e "$work/stop" ]; do
		n=$((n + 1))
		ask "visitor-$n"
	done
}

last_was_told() { [ "$(tail -n 1 "$work/answers")" = "200 $1" ]; }

# edit changes the policy, and waits until the requests that run are told so.
edit() {
	write_policy "$1"
	within "the limit of a tenant is $1" last_was_told "$1"
	step "the policy is edited while requests run: $1 requests a tenant"
}

run() {
	start redis redis-server --bind 127.0.0.1 --port 6379 --save '' --dir "$work/state"
	start backend python3 -m http.server --bind 127.0.0.1 --directory "$work/site" 3000
	start_service
	within 'Weir is healthy' curl -sf -o "$work/body" http://127.0.0.1:8080/healthcheck
	step 'Weir, called as ratelimit, serves before the control plane does'
	start gateway "$gateway" server --config-path "$work/gateway.yaml"
	within 'Envoy limits a tenant to 3' is_told 3
	step 'Envoy Gateway has pushed its rules to Weir, and started Envoy: 3 requests a tenant'
	want shop '200 200 200 429 429'
	want bank '200'

	: >"$work/answers"
	run_requests >>"$work/answers" 2>"$work/requests.log" &
	local requests=$! seen
	within 'requests run' last_was_told 3
	edit 5
	want cafe '200 200 200 200 200 429'
	edit 2
	want mill '200 200 429'
	: >"$work/stop"
	wait "$requests"
	seen=$(uniq "$work/answers" | paste -s -d ';')
	[ "$seen" = '200 3;200 5;200 2' ] || fail "the requests that ran were told $seen"
	step "$(wc -l <"$work/answers") requests that ran meanwhile all got 200, and were told 3, then 5, then 2"

	rm "$work/objects/policy.yaml"
	within 'nothing is limited' is_told ''
	want mill '200 200 200'
	step 'the policy is gone, and the limit with it'
}

finish() {
	local status=$?
	trap - EXIT
	kill $(jobs -p) 2>/dev/null || true
	wait
	exit "$status"
}

if [ "${1:-}" = --inside ]; then
	work=$2
	trap finish EXIT
	run
	exit
fi
if [ "${1:-}" = --namespaces ]; then
	work=$2
	enter_root
	exec chroot "$work/root" "$BASH" "$PWD/scripts/envoy-gateway.sh" --inside "$work"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for program in ip unshare; do
	command -v "$program" >/dev/null || fail "$program is missing: install iproute2 and util-linux"
done
build
write_files
"$gateway" certgen --local --config-home "$work/config" >"$work/certgen.log" 2>&1 || fail 'certgen failed'
unshare --user --map-root-user --mount --net --pid --fork --kill-child --mount-proc "$BASH" "$PWD/scripts/envoy-gateway.sh" --namespaces "$work"
