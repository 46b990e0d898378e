package accesslog

import (
	"bytes"
	"net/netip"
	"strings"

	"github.com/weirflow/weir/front"
)

// client is the client of a request, or the reason why it is not known.
type client struct {
	key, address string
	why          string
}

// The bounds of the remembered clients: their number, and the length of the text that names one.
const (
	maxClients    = 1 << 16
	maxClientText = 256
)

// clients makes clients of the texts of lines, and remembers them.
type clients struct {
	choose func(peer, forwarded string) (netip.Addr, bool)
	known  map[string]client
	text   []byte
}

func newClients(choose func(peer, forwarded string) (netip.Addr, bool)) clients {
	return clients{choose: choose, known: map[string]client{}}
}

// of returns the client of a request: of the address of the connection, which may be a list whose last member that is, and
// of the list that proxies forwarded.
func (c *clients) of(peer, forwarded []byte) client {
	c.text = append(append(append(c.text[:0], peer...), 0), forwarded...)
	if known, ok := c.known[string(c.text)]; ok {
		return known
	}
	found := c.find(string(peer), string(forwarded))
	if len(c.text) > maxClientText {
		return found
	}
	if len(c.known) == maxClients {
		clear(c.known)
	}
	c.known[string(c.text)] = found
	return found
}

func (c *clients) find(peer, forwarded string) client {
	addr, ok := netip.Addr{}, false
	peer = strings.TrimSpace(peer)
	comma := strings.LastIndexByte(peer, ',')
	if strings.Contains(strings.TrimSpace(peer[comma+1:]), " ") {
		return client{why: whyNotClient} // a zone of IPv6 can hold anything
	}
	if comma < 0 && strings.Count(peer, ":") == groups && peer[0] != '[' { // IPv6 with its port, without brackets
		if plain := peer[:strings.LastIndexByte(peer, ':')]; isIPv6(plain) {
			peer = plain
		}
	}
	switch {
	case comma >= 0 && c.choose == nil:
		if _, ok = front.ParseAddress(peer[:strings.IndexByte(peer, ',')]); ok {
			return client{why: whyClients}
		}
	case comma >= 0:
		addr, ok = c.choose(strings.TrimSpace(peer[comma+1:]), peer[:comma])
	case c.choose != nil:
		addr, ok = c.choose(peer, forwarded)
	default:
		addr, ok = front.ParseAddress(peer)
	}
	if !ok {
		return client{why: whyNotClient}
	}
	return client{key: front.AddressKey(addr, front.IPv6Prefix), address: addr.String()}
}

// groups is the number of the groups of an IPv6 address that is written whole.
const groups = 8

func isIPv6(text string) bool {
	addr, err := netip.ParseAddr(text)
	return err == nil && addr.Is6() && !strings.Contains(text, "::") // otherwise the port may be a group
}

// beforeLastColon returns an address whose port stands behind its last colon.
func beforeLastColon(peer []byte) []byte {
	if i := bytes.LastIndexByte(peer, ':'); i > 0 && len(peer) > 0 && peer[len(peer)-1] != ']' {
		return peer[:i]
	}
	return peer
}

// namesAddress reports whether one of the words is an address, or begins a list of addresses.
func namesAddress(words []byte) bool {
	for word := range bytes.FieldsFuncSeq(words, func(r rune) bool { return r == ' ' || r == ',' }) {
		if !bytes.ContainsAny(word, ".:") {
			continue // not an address, and most words have neither
		}
		if _, ok := front.ParseAddress(string(word)); ok {
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
	return letters > 0 && (allDigits(port) || !found)
}
