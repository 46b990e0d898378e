package main

import (
	"net"
	"strings"
	"testing"
)

func TestLaterRulesReplaceEarlierOnesInPlace(t *testing.T) {
	rules, err := parseRules([]string{"a=token bucket 1/s", "default=fixed window 5/m", "a=sliding window 2/s"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rules {
		got = append(got, r.String())
	}
	if want := "default=fixed window 5/m, a=sliding window 2/s"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}

func TestPrintedAddressCanBeReached(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:80": "127.0.0.1:80",
		"[::1]:80":     "[::1]:80",
		"0.0.0.0:80":   "127.0.0.1:80",
		"[::]:80":      "localhost:80",
		":80":          "localhost:80",
	} {
		tcp, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(tcp); got != want {
			t.Errorf("listening on %s: printed %s, want %s", address, got, want)
		}
	}
}
