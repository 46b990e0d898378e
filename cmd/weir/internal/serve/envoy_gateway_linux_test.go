package serve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weirflow/weir/cmd/weir/internal/xdstest"
	"github.com/weirflow/weir/internal/gatewaytest"
	"github.com/weirflow/weir/internal/testprocess"
)

// gatewayEnvoy is what Envoy Gateway writes for a listener with a route, a BackendTrafficPolicy of two rules, one of them by
// distinct values of a header, and the rate limit service over TLS. The fields are: the port, the port of the service, the file
// of the authority, the port of the backend, and the key of the route.
const gatewayEnvoy = `
static_resources:
  listeners:
  - name: default/eg/http
    address: {socket_address: {address: 127.0.0.1, port_value: %[1]s}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: http-10080
          route_config:
            name: default/eg/http
            virtual_hosts:
            - name: default/eg/http/www_example_com
              domains: ["*"]
              routes:
              - name: httproute/default/backend/rule/0/match/0/www_example_com
                match: {prefix: /}
                route:
                  cluster: httproute/default/backend/rule/0
                  rate_limits:
                  - actions:
                    - generic_key: {descriptor_key: %[5]s, descriptor_value: %[5]s}
                    - request_headers: {header_name: x-user-id, descriptor_key: rule-0-match-0}
                  - actions:
                    - generic_key: {descriptor_key: %[5]s, descriptor_value: %[5]s}
                    - generic_key: {descriptor_key: rule-1-match--1, descriptor_value: rule-1-match--1}
          http_filters:
          - name: envoy.filters.http.ratelimit
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
              domain: default/eg/http
              enable_x_ratelimit_headers: DRAFT_VERSION_03
              timeout: 5s
              rate_limit_service:
                transport_api_version: V3
                grpc_service: {envoy_grpc: {cluster_name: ratelimit_cluster}}
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: ratelimit_cluster
    connect_timeout: 10s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: ratelimit_cluster
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %[2]d}}}}]}]
    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context: {validation_context: {trusted_ca: {filename: %[3]s}}}
  - name: httproute/default/backend/rule/0
    load_assignment:
      cluster_name: httproute/default/backend/rule/0
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %[4]s}}}}]}]
`

// secured is a folder of certificates, as Envoy Gateway makes them, and what a control plane asks of its clients.
func secured(t *testing.T) (folder string, mutual grpc.ServerOption) {
	t.Helper()
	folder = t.TempDir()
	(&authority{t: t}).sign(folder, "ca").sign(folder, "server")
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "server.pem"), filepath.Join(folder, "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(text)
	return folder, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: authorities, ClientAuth: tls.RequireAndVerifyClientCert}))
}

// gatewayClient asks Envoy.
type gatewayClient struct {
	t   *testing.T
	url string
}

// statuses are those of n requests of a user.
func (c gatewayClient) statuses(n int, user string) string {
	c.t.Helper()
	var all []string
	for range n {
		status, _ := c.get(user)
		all = append(all, fmt.Sprint(status))
	}
	return strings.Join(all, " ")
}

func (c gatewayClient) get(user string) (int, http.Header) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("x-user-id", user)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Header
}

func (c gatewayClient) want(what, got, want string) {
	c.t.Helper()
	if got != want {
		c.t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

// The real Envoy asks a daemon that is called as ratelimit, with the variables of Envoy Gateway's pod and rules over xDS with
// certificates on both sides.
func TestEnvoyOfEnvoyGatewayIsLimitedByPushedRules(t *testing.T) {
	t.Parallel()
	folder, mutual := secured(t)
	volume, state := secretVolume(t, folder), filepath.Join(t.TempDir(), "weir.state")
	plane := xdstest.Start(t, "envoy-ratelimit", mutual)
	rules := func(first, second uint32) *pb.RateLimitConfig {
		return xdstest.Resource("default/eg/http", xdstest.Route("backend", hour("rule-0-match-0", first),
			xdstest.Limit("rule-1-match--1", "rule-1-match--1", second, pb.RateLimitUnit_YEAR)))
	}
	plane.Push("1", rules(3, 20))
	d := startInPlace(t, plane.Addr, volume, "WEIR_STATE="+state)
	plane.Accepted("1")
	backend := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(backend.Close)
	_, port, _ := net.SplitHostPort(backend.Listener.Addr().String())
	entry := fmt.Sprintf("127.0.0.1:%d", testprocess.FreePort(t))
	_, entryPort, _ := net.SplitHostPort(entry)
	gatewaytest.Envoy(t, entry, fmt.Sprintf(gatewayEnvoy, entryPort, d.ports["grpc"], filepath.Join(volume, "ca.crt"), port, xdstest.RouteKey("backend")))
	c := gatewayClient{t, "http://" + entry + "/"}

	status, fields := c.get("ann")
	c.want("the header field with two rules", fmt.Sprint(status, " ", fields.Get("x-ratelimit-limit")), "200 3, 3;w=3600, 20;w=31536000")
	c.want("the rest of ann's hour", c.statuses(3, "ann"), "200 200 429")
	c.want("another user", c.statuses(1, "bob"), "200")

	plane.Push("2", rules(5, 20))
	plane.Accepted("2")
	c.want("a larger limit, of which ann has used 4", c.statuses(2, "ann"), "200 429")
	plane.Push("3", rules(5, 20), xdstest.Resource("bad", xdstest.Limit("k", "", 1, pb.RateLimitUnit_UNKNOWN)))
	plane.Refused()
	c.want("a bad resource beside it", c.statuses(1, "ann"), "429")

	plane.Stop()
	for end := time.Now().Add(awayFor()); time.Now().Before(end); time.Sleep(awayFor() / 10) {
		c.want("the control plane is away", c.statuses(1, "ann"), "429")
	}
	d.stop()
	again := startInPlace(t, plane.Addr, volume, "WEIR_STATE="+state, fmt.Sprintf("GRPC_PORT=%d", d.ports["grpc"]))
	c.want("after a start without the control plane", c.statuses(1, "ann"), "429")
	again.awaitLog("rules restored that a control plane pushed before")

	plane.Push("4", xdstest.Resource("default/eg/http"))
	plane.Again()
	plane.Accepted("4")
	c.want("without limits", c.statuses(2, "ann"), "200 200")
}

// awayFor is how long the control plane is away: with WEIR_LONG a minute, in which the back-off has gone on for a while.
func awayFor() time.Duration {
	if os.Getenv("WEIR_LONG") != "" {
		return time.Minute
	}
	return 5 * time.Second
}
