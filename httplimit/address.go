package httplimit

import (
	"net/netip"
	"strings"
)

// parseAddress reads an address in the forms of RemoteAddr and of proxy headers: with or without a port, and for IPv6
// with or without brackets. It returns an IPv4-mapped address as IPv4, and drops a zone.
func parseAddress(text string) (netip.Addr, bool) {
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
