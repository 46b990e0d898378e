package main

import "net/netip"

// networkOf returns the network of a key that is an IP address: its /64 and then its /48 for IPv6, its /24 for IPv4.
// When there is no room for the key alone, it shares the limit of its network. A client with many addresses therefore
// gains nothing by using them all.
func networkOf(key string) (network string, ok bool) {
	if narrow, err := netip.ParsePrefix(key); err == nil {
		wide, err := narrow.Addr().Prefix(48)
		return wide.String(), err == nil && narrow.Bits() == 64
	}
	address, err := netip.ParseAddr(key)
	if err != nil {
		return "", false
	}
	bits := 64
	if address = address.Unmap(); address.Is4() {
		bits = 24
	}
	around, err := address.Prefix(bits)
	return around.String(), err == nil
}
