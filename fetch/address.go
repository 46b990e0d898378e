package fetch

import (
	"errors"
	"fmt"
	"net/netip"
)

// PrivateAddressError reports that a host has an address that is not on the public internet.
type PrivateAddressError struct {
	Address netip.Addr
	Kind    string // such as "a loopback address"
}

func (e *PrivateAddressError) Error() string {
	return fmt.Sprintf("%v is %s; private addresses are refused unless allowed", e.Address, e.Kind)
}

// privateError returns the PrivateAddressError in err, or nil.
func privateError(err error) *PrivateAddressError {
	private, _ := errors.AsType[*PrivateAddressError](err)
	return private
}

// reserved are the prefixes that the public internet does not route, of the IANA special-purpose registries.
var reserved = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "an address of this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private address"},
	{netip.MustParsePrefix("100.64.0.0/10"), "an address of a carrier's network"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private address"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved address"},
	{netip.MustParsePrefix("192.0.2.0/24"), "an address for documents"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private address"},
	{netip.MustParsePrefix("198.18.0.0/15"), "an address for tests of networks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "an address for documents"},
	{netip.MustParsePrefix("203.0.113.0/24"), "an address for documents"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},
}

// global6 is the part of IPv6 that is routed; within it, some prefixes are not, or hold IPv4 addresses.
var (
	global6    = netip.MustParsePrefix("2000::/3")
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	reserved6  = []netip.Prefix{netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("3fff::/20")}
	sixToFour  = netip.MustParsePrefix("2002::/16")
	routed2001 = []netip.Prefix{netip.MustParsePrefix("2001:1::/32"), netip.MustParsePrefix("2001:20::/27")}
)

// privateKind says what kind of private address an address is. It is empty for a public one.
func privateKind(a netip.Addr) string {
	a = a.WithZone("").Unmap()
	switch {
	case !a.IsValid():
		return "no address"
	case a.Is4():
		return privateKind4(a)
	case nat64.Contains(a):
		b := a.As16()
		return privateKind4(netip.AddrFrom4([4]byte(b[12:16])))
	case sixToFour.Contains(a):
		b := a.As16()
		return privateKind4(netip.AddrFrom4([4]byte(b[2:6])))
	case a.IsLoopback():
		return "a loopback address"
	case a.IsPrivate():
		return "a private address"
	case a.IsLinkLocalUnicast():
		return "a link-local address"
	case a.IsMulticast():
		return "a multicast address"
	case !global6.Contains(a):
		return "a reserved address"
	}
	for _, p := range routed2001 {
		if p.Contains(a) {
			return ""
		}
	}
	for _, p := range reserved6 {
		if p.Contains(a) {
			return "a reserved address"
		}
	}
	return ""
}

func privateKind4(a netip.Addr) string {
	for _, r := range reserved {
		if r.prefix.Contains(a) {
			return r.kind
		}
	}
	return ""
}
