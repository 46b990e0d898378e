package httplimit_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/weirflow/weir/httplimit"
)

// Whatever a client sends, a trusted proxy that appends the client's address is
// believed, and the key is an address or network.
func FuzzForwardedFor(f *testing.F) {
	for _, seed := range []string{"", "6.6.6.6", "6.6.6.6, 10.0.0.1", ",,", "[::1]:80", "::ffff:1.2.3.4", "unknown", "1.2.3.4:", "[", "]", "[::1]x", "fe80::1%zone"} {
		f.Add(seed)
	}
	client, err := httplimit.NewClient(httplimit.ClientOptions{Trusted: []string{"10.0.0.0/8"}, Logger: silent})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		if got := client.Key(request("GET", "10.0.0.1:80", "X-Forwarded-For", sent+", 192.0.2.1")); got != "192.0.2.1" {
			t.Errorf("%q and the proxy's entry count for %q, want 192.0.2.1", sent, got)
		}
		wantAddress(t, sent, client.Key(request("GET", "10.0.0.1:80", "X-Forwarded-For", sent)))
	})
}

// A client that sends a header of its own never chooses its address: it counts for the address that the proxy
// appended, or for the proxy if the header is malformed.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{"", "for=6.6.6.6", `for="6.6.6.6`, `for=6.6.6.6;x="`, `a="\`, ";", ",", "=", `for="[::1]:80";by=x`, "FOR=_x", `x="";for=6.6.6.6`} {
		f.Add(seed)
	}
	client, err := httplimit.NewClient(httplimit.ClientOptions{Trusted: []string{"10.0.0.0/8"}, Header: "Forwarded", Logger: silent})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		for _, appended := range []string{`for=192.0.2.1`, `for="192.0.2.1:80"`, `proto=https;for=192.0.2.1;by="10.0.0.1"`} {
			got := client.Key(request("GET", "10.0.0.1:80", "Forwarded", sent+", "+appended))
			if got != "192.0.2.1" && got != "10.0.0.1" {
				t.Errorf("%q and the proxy's %q count for %q", sent, appended, got)
			}
		}
		wantAddress(t, sent, client.Key(request("GET", "10.0.0.1:80", "Forwarded", sent)))
	})
}

// All spellings of an address are the same key.
func FuzzRemoteAddr(f *testing.F) {
	for _, seed := range []string{"1.2.3.4:80", "[::1]:80", "@", "", "[fe80::1%x]:1", "::1", "1.2.3.4:99999999", "[1.2.3.4]:80"} {
		f.Add(seed)
	}
	client, err := httplimit.NewClient(httplimit.ClientOptions{Logger: silent})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, remote string) {
		got := client.Key(request("GET", remote))
		if got == "" {
			return
		}
		wantAddress(t, remote, got)
		addr, ok := client.Addr(request("GET", remote))
		if again := client.Key(request("GET", netip.AddrPortFrom(addr, 1).String())); !ok || again != got {
			t.Errorf("%q counts for %q, and its address %v for %q", remote, got, addr, again)
		}
	})
}

// A refusal is the same refusal for any Accept header.
func FuzzAccept(f *testing.F) {
	for _, seed := range []string{"", "*/*", "text/html;q=0.9, */*;q=0", ";q=", "text/*;q=1e9", ",,;;==", "text/plain;q=NaN"} {
		f.Add(seed)
	}
	limited, err := httplimit.New(httplimit.Options{Logger: silent, Rules: []httplimit.Rule{{Limit: "deny all"}}})
	if err != nil {
		f.Fatal(err)
	}
	h := limited(ok)
	f.Fuzz(func(t *testing.T, accept string) {
		w := get(h, alice, "Accept", accept)
		if w.Code != 429 || !strings.Contains(w.Body.String(), "client") {
			t.Errorf("Accept %q: %d %q", accept, w.Code, w.Body)
		}
	})
}

func wantAddress(t *testing.T, sent, key string) {
	t.Helper()
	text, bits, isPrefix := strings.Cut(key, "/")
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Is4In6() || isPrefix != addr.Is6() || isPrefix && bits != "64" {
		t.Errorf("%q counts for %q, which is no IPv4 address and no IPv6 network", sent, key)
	}
}
