package weir_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/weirflow/weir"
)

// networkOf returns the network with which an address shares a limit when there is no room for the address alone: the
// /64 and then the /48 for IPv6, the /24 for IPv4.
func networkOf(key string) (parent string, ok bool) {
	if network, err := netip.ParsePrefix(key); err == nil {
		if network.Bits() != 64 {
			return "", false
		}
		wider, err := network.Addr().Prefix(48)
		return wider.String(), err == nil
	}
	address, err := netip.ParseAddr(key)
	if err != nil {
		return "", false
	}
	bits := 64
	if address = address.Unmap(); address.Is4() {
		bits = 24
	}
	network, err := address.Prefix(bits)
	return network.String(), err == nil
}

// An attacker who owns a /64 has 2^64 addresses. With room for one key, they get the limit of that key and one more
// together.
func ExampleMemoryOptions_parent() {
	rule, err := weir.NewRule("login", weir.FixedWindow{Rate: weir.PerHour(5)})
	if err != nil {
		fmt.Println(err)
		return
	}
	engine := weir.NewMemory(weir.MemoryOptions{
		Clock:   midnight.UnixNano,
		MaxKeys: 1,
		Parent:  networkOf,
	})
	allowed := 0
	for i := range 1000 {
		d, err := engine.Take(context.Background(), rule.For(fmt.Sprintf("2001:db8:1:2::%x", i), 1))
		if err != nil {
			fmt.Println(err)
			return
		}
		if d.Allowed {
			allowed++
		}
	}
	fmt.Println(allowed <= 5+5, "of 1000 addresses no more pass than of two")
	stats := engine.Stats()
	fmt.Println("keys:", stats.Keys <= 1, "shared:", stats.Shared)
	// Output:
	// true of 1000 addresses no more pass than of two
	// keys: true shared: 1
}
