package main

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/weirflow/weir"
)

func TestAddressesBelongToNetworks(t *testing.T) {
	for key, want := range map[string]string{ // empty for no network
		"2001:db8:1:2:3:4:5:6":  "2001:db8:1:2::/64",
		"2001:db8:1:2::/64":     "2001:db8:1::/48",
		"fe80::1%eth0":          "fe80::/64",
		"192.0.2.77":            "192.0.2.0/24",
		"::ffff:192.0.2.77":     "192.0.2.0/24",
		"2001:db8:1::/48":       "",
		"192.0.2.0/24":          "",
		"alice":                 "",
		"":                      "",
		"192.0.2.77:8080":       "",
		"2001:db8:1:2::/64, me": "",
	} {
		network, ok := networkOf(key)
		if ok != (want != "") || ok && network != want {
			t.Errorf("%q: got %s, %v, want %q", key, network, ok, want)
		}
	}
}

// A client that owns a /64 gets the limit of one address and one more, because only its first address had room. Later
// clients have limits of their own.
func TestAddressesWithoutRoomShareTheBudgetOfTheirNetwork(t *testing.T) {
	f := stateFile{keys: 1, log: slog.New(slog.DiscardHandler)}
	engine := weir.NewMemory(f.options())
	rule, err := weir.ParseRule("default=token bucket 5/366d burst 5")
	if err != nil {
		t.Fatal(err)
	}
	take := func(addresses string, n int) (admitted int) {
		for i := range n {
			d, err := engine.Take(t.Context(), rule.For(fmt.Sprintf(addresses, i), 1))
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				admitted++
			}
		}
		return admitted
	}
	if got := take("2001:db8:1:2::%x", 1000); got > 5+5 {
		t.Errorf("1000 addresses of a network: %d admitted, want at most 10", got)
	}
	if got := take("192.0.2.%d", 5); got != 5 {
		t.Errorf("5 addresses of another network: %d admitted, want 5", got)
	}
}
