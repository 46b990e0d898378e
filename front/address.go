package front

import (
	"net/netip"
	"strings"
)

// IPv6Prefix is the number of bits of an IPv6 address that make the key of a client by default: the smallest network of
// one client.
const IPv6Prefix = 64

// ParseAddress reads an address in the forms of http.Request.RemoteAddr, of proxy headers and of access logs: with or
// without a port, and for IPv6 with or without brackets. It returns an IPv4-mapped address as IPv4, and drops a zone.
func ParseAddress(text string) (netip.Addr, bool) {
	text = strings.Trim(text, " \t")
	addr, err := netip.ParseAddr(text)
	if err != nil {
		addr, err = netip.ParseAddr(withoutPort(text))
	}
	if err != nil {
		return netip.Addr{}, false
	}
	return addr.Unmap().WithZone(""), true
}

// withoutPort returns the host of host:port, [host]:port or [host]. It returns the empty text if the port is not a
// number.
func withoutPort(text string) string {
	host, port := text, ""
	if rest, bracketed := strings.CutPrefix(text, "["); bracketed {
		host, port, _ = strings.Cut(rest, "]")
		if port == "" {
			return host
		}
		if port[0] != ':' || !strings.Contains(host, ":") {
			return ""
		}
		port = port[1:]
	} else if host, port, _ = strings.Cut(text, ":"); strings.Contains(port, ":") {
		return ""
	}
	if !isNumber(port) {
		return ""
	}
	return host
}

func isNumber(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != "" && len(text) <= 5
}

// AddressKey returns the key of an address: the address itself for IPv4, or its network for IPv6, because one client
// has a whole network of IPv6 addresses.
func AddressKey(addr netip.Addr, ipv6Prefix int) string {
	if addr = addr.Unmap().WithZone(""); addr.Is4() || ipv6Prefix == 128 {
		return addr.String()
	}
	prefix, _ := addr.Prefix(ipv6Prefix)
	return prefix.String()
}

// Network returns the network of a key that is an address. It is the Parent of the engine that New makes, for engines of
// your own: the key shares the network's limit when the engine has no room for the key. See weir.MemoryOptions.
func Network(key string) (parent string, ok bool) {
	prefix, err := netip.ParsePrefix(key)
	if err != nil {
		addr, err := netip.ParseAddr(key)
		if err != nil {
			return "", false
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	steps := []int{48, 32}
	if prefix.Addr().Is4() {
		steps = []int{24, 16}
	}
	for _, bits := range steps {
		if prefix.Bits() > bits {
			wider, _ := prefix.Addr().Prefix(bits)
			return wider.String(), true
		}
	}
	return "", false
}
