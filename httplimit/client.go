package httplimit

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ClientOptions say how the address of a client is found behind proxies. The zero
// value takes the address of the connection.
type ClientOptions struct {
	// Trusted are the proxies whose header is believed: addresses, prefixes such
	// as 10.0.0.0/8, or "unix" for connections over a Unix socket. The header
	// of any other peer is ignored.
	Trusted []string
	// Header is where the proxies tell the address. In X-Forwarded-For and
	// Forwarded the last address counts that is not of a trusted proxy. Any
	// other field, such as X-Real-Ip, holds one address, and the proxy must
	// overwrite what a client sends. Default: X-Forwarded-For.
	Header string
	// IPv6Prefix is how many bits of an IPv6 address make the key, 32 to 128,
	// because one client has a network of addresses. Default: 64.
	IPv6Prefix int
	// Logger is told once of each likely mistake. Default: slog.Default().
	Logger *slog.Logger
}

// Client finds the addresses of clients. The zero Client takes the address of the
// connection.
type Client struct {
	trusted    []netip.Prefix
	unix       bool
	header     string
	ipv6Prefix int
	watch      *clientWatch
}

// NewClient makes a Client. Its errors are *weir.OptionError values joined.
func NewClient(o ClientOptions) (*Client, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	c := direct(o.Logger)
	var problems []error
	for _, text := range o.Trusted {
		problems = append(problems, c.trust(text))
	}
	switch {
	case o.Header != "" && len(o.Trusted) == 0:
		problems = append(problems, optionError("header", "%s is believed from no one: name the proxies in Trusted", o.Header))
	case o.Header != "":
		c.header = http.CanonicalHeaderKey(o.Header)
	}
	if o.IPv6Prefix != 0 {
		c.ipv6Prefix = o.IPv6Prefix
	}
	if c.ipv6Prefix < 32 || c.ipv6Prefix > 128 {
		problems = append(problems, optionError("ipv6Prefix", "%d is not within 32 and 128", c.ipv6Prefix))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return c, nil
}

// direct is a Client that trusts nobody.
func direct(logger *slog.Logger) *Client {
	return &Client{header: forwardedFor, ipv6Prefix: defaultIPv6Prefix, watch: newClientWatch(logger)}
}

const defaultIPv6Prefix = 64 // what one client has at the least

const (
	forwardedFor = "X-Forwarded-For"
	forwarded    = "Forwarded"
)

// trust adds a proxy.
func (c *Client) trust(text string) error {
	if text == "unix" {
		c.unix = true
		return nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		addr, ok := parseAddress(text)
		if !ok {
			return optionError("trusted", "%q is no address, prefix or unix", text)
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	if prefix.Addr().Is4In6() {
		return optionError("trusted", "%q is an IPv4-mapped prefix: write it as IPv4", text)
	}
	if prefix.Bits() == 0 {
		return optionError("trusted", "%q trusts everyone, so that any client can choose its address", text)
	}
	c.trusted = append(c.trusted, prefix.Masked())
	return nil
}

// Key is the key of a client: its IPv4 address, or the network of its IPv6
// address. It is empty if there is no address, as on a Unix socket.
func (c *Client) Key(r *http.Request) string {
	key := ""
	if len(c.trusted) == 0 {
		key = plainIPv4(r.RemoteAddr)
	}
	if key == "" {
		if addr, ok := c.Addr(r); ok {
			key = addressKey(addr, cmp.Or(c.ipv6Prefix, defaultIPv6Prefix))
		}
	}
	if c.watch != nil && c.watch.looks() {
		c.watch.look(c, r, key)
	}
	return key
}

// plainIPv4 is the address in a RemoteAddr of IPv4 with a port, which is its own
// key; empty if it is anything else.
func plainIPv4(remote string) string {
	colon := strings.LastIndexByte(remote, ':')
	if colon < 0 || colon > len("255.255.255.255") {
		return ""
	}
	if addr, err := netip.ParseAddr(remote[:colon]); err != nil || !addr.Is4() || !isNumber(remote[colon+1:]) {
		return ""
	}
	return remote[:colon]
}

// Addr is the address of a client. The connection's peer is the client, unless it
// is a trusted proxy that says otherwise. What a trusted proxy says is read from
// its end, and ends at the first address that is not trusted. An entry that is no
// address ends it too: then the request counts for the proxy that let it through.
func (c *Client) Addr(r *http.Request) (addr netip.Addr, ok bool) {
	addr, ok = parseAddress(r.RemoteAddr)
	if !c.trusts(addr, ok) {
		return addr, ok
	}
	for hop := range c.hops(r.Header) {
		next, isAddress := parseAddress(hop)
		if !isAddress {
			break
		}
		addr, ok = next, true
		if !c.trusts(addr, true) {
			break
		}
	}
	return addr, ok
}

func (c *Client) trusts(addr netip.Addr, ok bool) bool {
	if !ok {
		return c.unix
	}
	return slices.ContainsFunc(c.trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}
