package httplimit

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/weirflow/weir/front"
)

// ClientOptions configure how a Client finds the address of a client behind proxies. The zero value takes the address
// of the connection.
type ClientOptions struct {
	// Trusted are the proxies whose header the Client believes: addresses, prefixes such as 10.0.0.0/8, or "unix" for
	// connections over a Unix socket. The Client ignores the header of any other peer.
	Trusted []string
	// Header is the field that the proxies pass the address in. In X-Forwarded-For and Forwarded, the client is the
	// last address that is not a trusted proxy. Any other field, such as X-Real-Ip, holds one address, and the proxy
	// must overwrite what a client sends. Default: X-Forwarded-For.
	Header string
	// IPv6Prefix is the number of bits of an IPv6 address that make the key, 32 to 128, because one client has a
	// network of addresses. Default: 64.
	IPv6Prefix int
	// Logger receives one line for each kind of likely mistake. Default: slog.Default().
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

// NewClient returns a Client. Its errors are joined *weir.OptionError values.
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
		problems = append(problems, optionError("header", "%s is set, but no proxy is trusted: name the proxies in Trusted", o.Header))
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

// direct returns a Client that trusts no proxy.
func direct(logger *slog.Logger) *Client {
	return &Client{header: forwardedFor, ipv6Prefix: front.IPv6Prefix, watch: newClientWatch(logger)}
}

// trust adds a proxy.
func (c *Client) trust(text string) error {
	if text == "unix" {
		c.unix = true
		return nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		addr, ok := front.ParseAddress(text)
		if !ok {
			return optionError("trusted", "%q is not an address, a prefix or \"unix\"", text)
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

// Key returns the key of a client: its IPv4 address, or the network of its IPv6 address. It is empty if there is no
// address, as on a Unix socket.
func (c *Client) Key(r *http.Request) string {
	key := ""
	if len(c.trusted) == 0 {
		key = plainIPv4(r.RemoteAddr)
	}
	if key == "" {
		if addr, ok := c.Addr(r); ok {
			key = front.AddressKey(addr, cmp.Or(c.ipv6Prefix, front.IPv6Prefix))
		}
	}
	if c.watch != nil && c.watch.looks() {
		c.watch.look(c, r, key)
	}
	return key
}

// plainIPv4 returns the address in a RemoteAddr of IPv4 with a port, which is its own key. It returns "" for any other.
func plainIPv4(remote string) string {
	colon := strings.LastIndexByte(remote, ':')
	if colon < 0 || colon > len("255.255.255.255") {
		return ""
	}
	addr, err := netip.ParseAddr(remote[:colon])
	if _, badPort := strconv.ParseUint(remote[colon+1:], 10, 16); err != nil || badPort != nil || !addr.Is4() {
		return ""
	}
	return remote[:colon]
}

// Addr returns the address of a client. This is the peer of the connection, unless the peer is a trusted proxy that
// names another address. Addr reads the entries of a trusted proxy from the last one back, and stops at the first
// address that is not trusted. An entry that is not an address stops it too: the request then counts for the proxy
// that let it through.
func (c *Client) Addr(r *http.Request) (addr netip.Addr, ok bool) {
	addr, ok = front.ParseAddress(r.RemoteAddr)
	if !c.trusts(addr, ok) {
		return addr, ok
	}
	for hop := range hops(r.Header, c.header) {
		next, isAddress := front.ParseAddress(hop)
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

// Trusts reports whether a request comes straight from a trusted proxy, so that its header fields can be believed.
func (c *Client) Trusts(r *http.Request) bool { return c.trusts(front.ParseAddress(r.RemoteAddr)) }

func (c *Client) trusts(addr netip.Addr, ok bool) bool {
	if !ok {
		return c.unix
	}
	return slices.ContainsFunc(c.trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// clientWatch inspects the addresses of the first requests.
type clientWatch struct {
	watch
	first atomic.Pointer[string]
	other atomic.Bool
}

func newClientWatch(logger *slog.Logger) *clientWatch {
	w := &clientWatch{watch: watch{logger: logger}}
	w.left.Store(watched)
	return w
}

// look inspects the address of a request and the header of its proxies.
func (w *clientWatch) look(c *Client, r *http.Request, key string) {
	w.lookAtAddress(key)
	if len(c.trusted) == 0 && !c.unix {
		for _, name := range []string{forwardedFor, forwarded, "X-Real-Ip"} {
			if len(r.Header[name]) > 0 {
				w.say(unexpectedHeader, "header", name, "peer", r.RemoteAddr)
			}
		}
		return
	}
	if peer, ok := front.ParseAddress(r.RemoteAddr); !c.trusts(peer, ok) {
		return
	}
	if len(r.Header[c.header]) == 0 {
		w.say(missingHeader, "header", c.header, "proxy", r.RemoteAddr)
		return
	}
	seen := false
	for hop := range hops(r.Header, c.header) {
		addr, ok := front.ParseAddress(hop)
		if seen = ok; !ok || !c.trusts(addr, true) {
			break
		}
	}
	if !seen {
		w.say(badHeader, "header", c.header, "value", r.Header[c.header], "proxy", r.RemoteAddr)
	}
}

// lookAtAddress logs if all inspected requests came from one address.
func (w *clientWatch) lookAtAddress(key string) {
	if !w.first.CompareAndSwap(nil, &key) && *w.first.Load() != key {
		w.other.Store(true)
	}
	if w.left.Load() <= 0 && !w.other.Load() {
		w.say(oneAddress, "address", key)
	}
}
