package simulate

import (
	"bytes"

	"github.com/weirflow/weir/front"
)

// appendClient appends the key of the client that a field names, which is the key that every front gives an address.
// A field that is no address has no client, and a list of addresses has no certain one.
func appendClient(key, field []byte) (_ []byte, why string) {
	if isIPv4(field) {
		return append(key, field...), ""
	}
	first, _, list := bytes.Cut(field, []byte(","))
	addr, ok := front.ParseAddress(string(first))
	switch {
	case !ok:
		return key, whyNotClient
	case list:
		return key, whyClients
	}
	return append(key, front.AddressKey(addr, front.IPv6Prefix)...), ""
}

// isIPv4 reports whether b is an IPv4 address without a port, which is its own key.
func isIPv4(b []byte) bool {
	dots, value, digits := 0, 0, 0
	for _, c := range b {
		switch {
		case c == '.' && digits > 0:
			dots, value, digits = dots+1, 0, 0
		case isDigit(c) && (digits == 0 || value > 0):
			if value, digits = 10*value+int(c-'0'), digits+1; value > 255 {
				return false
			}
		default:
			return false
		}
	}
	return dots == 3 && digits > 0
}

// namesAddress reports whether one of the words is an address, or begins a list of addresses.
func namesAddress(words []byte) bool {
	for rest := words; len(rest) > 0; {
		var first []byte
		if first, rest = word(rest); !bytes.ContainsAny(first, ".:") {
			continue // not an address, and most words have neither
		}
		if _, why := appendClient(nil, first); why != whyNotClient {
			return true
		}
	}
	return false
}

// isHostName reports whether b is a name, with or without a port, that may be a virtual host.
func isHostName(b []byte) bool {
	name, port, found := bytes.Cut(b, []byte(":"))
	letters := 0
	for _, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			letters++
		case !isDigit(c) && c != '-' && c != '.' && c != '_':
			return false
		}
	}
	for _, c := range port {
		if !isDigit(c) {
			return false
		}
	}
	return letters > 0 && (len(port) > 0 || !found)
}
