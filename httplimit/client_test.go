package httplimit_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/layer"
)

// Each row is a request as the server sees it, and the key that it must count for.
func TestClientAddress(t *testing.T) {
	xff := httplimit.ClientOptions{Trusted: []string{"10.0.0.0/8", "2001:db8:ffff::/48"}}
	fwd := httplimit.ClientOptions{Trusted: []string{"10.0.0.0/8"}, Header: "Forwarded"}
	realIP := httplimit.ClientOptions{Trusted: []string{"10.0.0.1"}, Header: "x-real-ip"}
	unix := httplimit.ClientOptions{Trusted: []string{"unix"}}
	tests := []struct {
		name    string
		options httplimit.ClientOptions
		peer    string
		headers []string
		want    string
	}{
		{"direct", httplimit.ClientOptions{}, "192.0.2.1:80", nil, "192.0.2.1"},
		{"direct with spoofed header", httplimit.ClientOptions{}, "192.0.2.1:80", []string{"X-Forwarded-For", "6.6.6.6", "X-Real-Ip", "6.6.6.6", "Forwarded", "for=6.6.6.6"}, "192.0.2.1"},
		{"without a port", httplimit.ClientOptions{}, "192.0.2.1", nil, "192.0.2.1"},
		{"ipv6", httplimit.ClientOptions{}, "[2001:db8:1:2:3:4:5:6]:80", nil, "2001:db8:1:2::/64"},
		{"ipv6 in the same network", httplimit.ClientOptions{}, "[2001:db8:1:2:ffff::1]:80", nil, "2001:db8:1:2::/64"},
		{"ipv6 with a zone", httplimit.ClientOptions{}, "[fe80::1%eth0]:80", nil, "fe80::/64"},
		{"ipv6 by /56", httplimit.ClientOptions{IPv6Prefix: 56}, "[2001:db8:1:2ff::1]:80", nil, "2001:db8:1:200::/56"},
		{"ipv6 by address with a zone", httplimit.ClientOptions{IPv6Prefix: 128}, "[fe80::1%eth0]:80", nil, "fe80::1"},
		{"ipv6 by address", httplimit.ClientOptions{IPv6Prefix: 128}, "[2001:db8::1]:80", nil, "2001:db8::1"},
		{"mapped ipv4", httplimit.ClientOptions{}, "[::ffff:192.0.2.1]:80", nil, "192.0.2.1"},
		{"unix socket", httplimit.ClientOptions{}, "@", nil, ""},

		{"one hop", xff, "10.0.0.1:80", []string{"X-Forwarded-For", "192.0.2.1"}, "192.0.2.1"},
		{"spoofed before one hop", xff, "10.0.0.1:80", []string{"X-Forwarded-For", "6.6.6.6, 192.0.2.1"}, "192.0.2.1"},
		{"three hops", xff, "10.0.0.1:80", []string{"X-Forwarded-For", "6.6.6.6,192.0.2.1, 10.0.0.3,\t10.0.0.2"}, "192.0.2.1"},
		{"two lines", xff, "10.0.0.1:80", []string{"X-Forwarded-For", "6.6.6.6", "X-Forwarded-For", "192.0.2.1"}, "192.0.2.1"},
		{"untrusted peer", xff, "203.0.113.9:80", []string{"X-Forwarded-For", "192.0.2.1"}, "203.0.113.9"},
		{"mapped proxy", xff, "[::ffff:10.0.0.1]:80", []string{"X-Forwarded-For", "::ffff:192.0.2.1"}, "192.0.2.1"},
		{"ipv6 proxy", xff, "[2001:db8:ffff::1]:80", []string{"X-Forwarded-For", "2001:db8:1::9"}, "2001:db8:1::/64"},
		{"client within the trusted network", xff, "10.0.0.1:80", []string{"X-Forwarded-For", "10.9.9.9"}, "10.9.9.9"},
		{"with a port", xff, "10.0.0.1:80", []string{"X-Forwarded-For", "192.0.2.1:5555"}, "192.0.2.1"},
		{"ipv6 with a port", xff, "10.0.0.1:80", []string{"X-Forwarded-For", "[2001:db8:1::9]:5555"}, "2001:db8:1::/64"},
		{"no header", xff, "10.0.0.1:80", nil, "10.0.0.1"},
		{"empty header", xff, "10.0.0.1:80", []string{"X-Forwarded-For", ""}, "10.0.0.1"},
		{"garbage at the end", xff, "10.0.0.1:80", []string{"X-Forwarded-For", "192.0.2.1, unknown"}, "10.0.0.1"},
		{"garbage before a trusted hop", xff, "10.0.0.1:80", []string{"X-Forwarded-For", "192.0.2.1, oops, 10.0.0.2"}, "10.0.0.2"},
		{"garbage that the client sent", xff, "10.0.0.1:80", []string{"X-Forwarded-For", "'; drop, 192.0.2.1"}, "192.0.2.1"},
		{"other header", xff, "10.0.0.1:80", []string{"X-Real-Ip", "192.0.2.1"}, "10.0.0.1"},
		{"very many hops", xff, "10.0.0.1:80", []string{"X-Forwarded-For", "192.0.2.1" + strings.Repeat(",10.0.0.2", 100)}, "10.0.0.2"},

		{"forwarded", fwd, "10.0.0.1:80", []string{"Forwarded", `for=6.6.6.6, for=192.0.2.1;proto=https;by=10.0.0.1`}, "192.0.2.1"},
		{"forwarded ipv6", fwd, "10.0.0.1:80", []string{"Forwarded", `proto=https;For="[2001:db8:1::9]:4711"`}, "2001:db8:1::/64"},
		{"forwarded two lines", fwd, "10.0.0.1:80", []string{"Forwarded", `for=6.6.6.6`, "Forwarded", `for="192.0.2.1"`}, "192.0.2.1"},
		{"forwarded hidden", fwd, "10.0.0.1:80", []string{"Forwarded", `for=192.0.2.1, for=_secret`}, "10.0.0.1"},
		{"forwarded without for", fwd, "10.0.0.1:80", []string{"Forwarded", `for=192.0.2.1, proto=http`}, "10.0.0.1"},
		{"forwarded with an open quote", fwd, "10.0.0.1:80", []string{"Forwarded", `for=6.6.6.6;x=", for=192.0.2.1`}, "10.0.0.1"},
		{"forwarded with a quote that swallows", fwd, "10.0.0.1:80", []string{"Forwarded", `for=6.6.6.6;x=", for="192.0.2.1"`}, "10.0.0.1"},
		{"x-forwarded-for beside forwarded", fwd, "10.0.0.1:80", []string{"X-Forwarded-For", "6.6.6.6", "Forwarded", "for=192.0.2.1"}, "192.0.2.1"},

		{"single", realIP, "10.0.0.1:80", []string{"X-Real-Ip", "192.0.2.1"}, "192.0.2.1"},
		{"single twice", realIP, "10.0.0.1:80", []string{"X-Real-Ip", "6.6.6.6", "X-Real-Ip", "192.0.2.1"}, "10.0.0.1"},
		{"single from another peer", realIP, "10.0.0.2:80", []string{"X-Real-Ip", "192.0.2.1"}, "10.0.0.2"},
		{"trusted socket", unix, "@", []string{"X-Forwarded-For", "192.0.2.1"}, "192.0.2.1"},
		{"trusted socket and a peer", unix, "203.0.113.9:80", []string{"X-Forwarded-For", "192.0.2.1"}, "203.0.113.9"},
	}
	for _, tt := range tests {
		tt.options.Logger = silent
		client, err := httplimit.NewClient(tt.options)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := client.Key(request("GET", tt.peer, tt.headers...)); got != tt.want {
			t.Errorf("%s: peer %s with %q counts for %q, want %q", tt.name, tt.peer, tt.headers, got, tt.want)
		}
	}
}

func TestClientOptionsThatTrustEveryAddressAreRefused(t *testing.T) {
	tests := []struct {
		options httplimit.ClientOptions
		want    string
	}{
		{httplimit.ClientOptions{Header: "X-Real-Ip"}, "name the proxies in Trusted"},
		{httplimit.ClientOptions{Trusted: []string{"0.0.0.0/0"}}, "trusts everyone"},
		{httplimit.ClientOptions{Trusted: []string{"::/0"}}, "trusts everyone"},
		{httplimit.ClientOptions{Trusted: []string{"localhost"}}, `"localhost" is not an address`},
		{httplimit.ClientOptions{Trusted: []string{"::ffff:10.0.0.0/104"}}, "write it as IPv4"},
		{httplimit.ClientOptions{IPv6Prefix: 16}, "16 is not within 32 and 128"},
	}
	for _, tt := range tests {
		_, err := httplimit.NewClient(tt.options)
		if _, option := errors.AsType[*weir.OptionError](err); !option || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("NewClient(%+v) = %v, want an option error with %q", tt.options, err, tt.want)
		}
	}
}

func TestTheZeroClientTakesTheConnectionsAddress(t *testing.T) {
	var client httplimit.Client
	for remote, want := range map[string]string{"192.0.2.1:80": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::/64", "@": ""} {
		if got := client.Key(request("GET", remote, "X-Forwarded-For", "6.6.6.6")); got != want {
			t.Errorf("%s counts for %q, want %q", remote, got, want)
		}
	}
}

func TestKeys(t *testing.T) {
	user, tenant := httplimit.Header("user"), httplimit.Header("tenant")
	both := httplimit.Combine(user, tenant)
	tests := []struct {
		name    string
		key     httplimit.Key
		headers []string
		want    string
	}{
		{"header", user, []string{"User", "u"}, "u"},
		{"header twice", user, []string{"User", "u", "User", "v"}, ""},
		{"both", both, []string{"User", "u", "Tenant", "t"}, "u|t"},
		{"one of both", both, []string{"User", "u"}, ""},
		{"separator in the first", both, []string{"User", "u|t", "Tenant", "x"}, `u\|t|x`},
		{"separator in the second", both, []string{"User", "u", "Tenant", "t|x"}, `u|t\|x`},
		{"escape", both, []string{"User", `u\`, "Tenant", "t"}, `u\\|t`},
	}
	for _, tt := range tests {
		if got := tt.key(request("GET", alice, tt.headers...)); got != tt.want {
			t.Errorf("%s: key %q, want %q", tt.name, got, tt.want)
		}
	}
	mux := http.NewServeMux()
	var got string
	mux.HandleFunc("/v1/{tenant}/", func(_ http.ResponseWriter, r *http.Request) { got = httplimit.PathValue("tenant")(r) })
	r := request("GET", alice)
	r.URL.Path = "/v1/acme/x"
	if answer(mux, r); got != "acme" {
		t.Errorf("path value %q, want acme", got)
	}
}

// Otherwise a client could choose to be undecidable, and would be admitted under layer.Allow.
func TestALongKeyIsLimitedLikeAnyOther(t *testing.T) {
	h := wrap(t, httplimit.Options{Guard: layer.GuardOptions{OnFailure: layer.Allow}, Rules: []httplimit.Rule{{Limit: "1/h", Key: httplimit.Header("Key")}}}, ok)
	long := strings.Repeat("k", 100_000)
	wantStatus(t, "first", get(h, alice, "Key", long), 200)
	wantStatus(t, "second", get(h, alice, "Key", long), 429)
	wantStatus(t, "another long key", get(h, alice, "Key", long+"x"), 200)
}
