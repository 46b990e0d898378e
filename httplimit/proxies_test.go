package httplimit_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/internal/gatewaytest"
	"github.com/weirflow/weir/internal/testprocess"
)

// Real proxies stand before a limited server. Clients at two addresses claim other addresses, and each has its own
// limit.
func TestClientsBehindRealProxies(t *testing.T) {
	tests := []struct {
		name   string
		header string
		start  func(t testing.TB, addr, server string)
	}{
		{"nginx", "", nginxWith("X-Forwarded-For $proxy_add_x_forwarded_for")},
		{"nginx with one address", "X-Real-Ip", nginxWith("X-Real-IP $remote_addr")},
		{"nginx with Forwarded", "Forwarded", nginxWith(`Forwarded "for=$remote_addr;proto=http"`)},
		{"Caddy", "", caddy},
		{"Envoy", "", envoy},
		{"Caddy before nginx", "", func(t testing.TB, addr, server string) {
			inner := "127.0.0.1:" + strconv.Itoa(testprocess.FreePort(t))
			nginxWith("X-Forwarded-For $proxy_add_x_forwarded_for")(t, inner, server)
			caddy(t, addr, inner)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, err := httplimit.NewClient(httplimit.ClientOptions{Trusted: []string{"127.0.0.1"}, Header: tt.header, Logger: silent})
			if err != nil {
				t.Fatal(err)
			}
			server := serve(t, wrap(t, httplimit.Options{Client: client, Rules: []httplimit.Rule{{Limit: "fixed window 3/1d"}}},
				http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, client.Key(r)) })), false)
			addr := "127.0.0.1:" + strconv.Itoa(testprocess.FreePort(t))
			tt.start(t, addr, server.Listener.Addr().String())
			for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
				for i := range 5 {
					status, key := getFrom(t, from, addr, fmt.Sprintf("192.0.2.%d", i))
					if i < 3 && (status != 200 || key != from) {
						t.Errorf("request %d from %s: %d, counts for %q, want 200 and its own address", i+1, from, status, key)
					} else if i >= 3 && status != 429 {
						t.Errorf("request %d from %s: %d, want 429 after 3", i+1, from, status)
					}
				}
			}
		})
	}
}

func nginxWith(field string) func(t testing.TB, addr, server string) {
	return func(t testing.TB, addr, server string) {
		t.Helper()
		gatewaytest.Nginx(t, addr, "server { listen "+addr+"; location / { proxy_pass http://"+server+"; proxy_set_header "+field+"; } }")
	}
}

func caddy(t testing.TB, addr, server string) {
	t.Helper()
	_, port, _ := net.SplitHostPort(addr)
	gatewaytest.Caddy(t, addr, ":"+port+" {\n\treverse_proxy "+server+"\n}\n")
}

// envoy starts Envoy, which appends the address of a client only with use_remote_address.
func envoy(t testing.TB, addr, server string) {
	t.Helper()
	address := func(addr string) string {
		host, port, _ := net.SplitHostPort(addr)
		return "{socket_address: {address: " + host + ", port_value: " + port + "}}"
	}
	gatewaytest.Envoy(t, addr, `
static_resources:
  listeners:
    - address: `+address(addr)+`
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: shop
                use_remote_address: true
                http_filters:
                  - name: envoy.filters.http.router
                    typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
                route_config: {virtual_hosts: [{name: shop, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: server}}]}]}
  clusters:
    - name: server
      load_assignment: {cluster_name: server, endpoints: [{lb_endpoints: [{endpoint: {address: `+address(server)+`}}]}]}
`)
}

// getFrom asks from an address of the loopback interface, with header fields that claim another.
func getFrom(t *testing.T, from, addr, claimed string) (status int, body string) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
	r := httptest.NewRequest("GET", "http://"+addr+"/", nil)
	r.RequestURI = ""
	for name, value := range map[string]string{"X-Forwarded-For": claimed, "X-Real-Ip": claimed, "Forwarded": "for=" + claimed} {
		r.Header.Set(name, value)
	}
	response, err := client.Do(r.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
