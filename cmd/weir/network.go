package main

import "net/netip"

// networkOf is what a key that is an IP address shares a budget with, when there
// is no room for it alone, so that whoever has a network full of addresses gets
// no more by using them all: of IPv6 its /64, then its /48, of IPv4 its /24.
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
