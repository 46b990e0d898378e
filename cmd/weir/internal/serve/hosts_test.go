package serve

import (
	"net"
	"testing"
)

func TestHostsOfLoopbackAndGivenOnesAreServed(t *testing.T) {
	served, err := parseHosts([]string{"Limits.example.org.", "192.0.2.7", "2001:DB8::1"}, "MyMachine:8080")
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"":                          true, // HTTP/1.0, which no browser uses
		"localhost":                 true,
		"LocalHost.:8080":           true,
		"weir.localhost:8080":       true,
		"127.0.0.1":                 true,
		"127.3.2.1:9000":            true,
		"[::1]:8080":                true,
		"[::1]":                     true,
		"[::ffff:127.0.0.1]:80":     true,
		"limits.example.org":        true,
		"LIMITS.example.org:443":    true,
		"192.0.2.7:80":              true,
		"[2001:db8:0::1]:80":        true,
		"mymachine:8080":            true,
		"evil.example":              false,
		"evil.example:8080":         false,
		"localhost.evil.example":    false,
		"127.0.0.1.evil.example":    false,
		"notlocalhost":              false,
		"example.org":               false,
		"my.limits.example.org":     false,
		"192.0.2.8":                 false,
		"0.0.0.0:8080":              false,
		"[::]:8080":                 false,
		"evil.example@localhost":    false,
		"evil.example, localhost:1": false,
	} {
		if got := served.serves(host); got != want {
			t.Errorf("Host %q: served %v, want %v", host, got, want)
		}
	}
}

func TestHostsThatAreNoneAreRefused(t *testing.T) {
	for _, name := range []string{"", ".", "localhost:8080", "http://a.example", "a/b", "[::1]:80", "a b", "user@a"} {
		if _, err := parseHosts([]string{name}, "127.0.0.1:8080"); err == nil {
			t.Errorf("--host %q was taken", name)
		}
	}
}

func TestLoopbackListenersAndSocketsAskForTheHost(t *testing.T) {
	if serves := (hosts{}).at(&net.UnixAddr{Name: "weir.sock", Net: "unix"}); serves == nil || serves("evil.example") || !serves("localhost") {
		t.Error("a socket answers every host, or not localhost")
	}
	for address, asks := range map[string]bool{"127.0.0.1:80": true, "127.0.1.1:80": true, "[::1]:80": true, "0.0.0.0:80": false, "[::]:80": false, "192.0.2.1:80": false} {
		tcp, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		serves := (hosts{}).at(tcp)
		if (serves != nil) != asks || asks && serves("evil.example") {
			t.Errorf("listening on %s: asks %v, want %v", address, serves != nil, asks)
		}
		if err := (hosts{}).check([]string{"a.example"}, address, "", tcp); (err == nil) != asks {
			t.Errorf("listening on %s with --host: got %v, want an error: %v", address, err, !asks)
		}
	}
}
