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
	if want := "a=sliding window 2/s, default=fixed window 5/m"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}

func TestDefaultRuleIsThereOnlyIfNoneIsGiven(t *testing.T) {
	for _, test := range []struct {
		given []string
		want  string
	}{
		{nil, defaultRule},
		{[]string{"login=60/m"}, "login=token bucket 60/m"},
	} {
		rules, err := parseRules(test.given)
		if err != nil || len(rules) != 1 || rules[0].String() != test.want {
			t.Errorf("%q: got %v and error %v, want the one rule %s", test.given, rules, err, test.want)
		}
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
