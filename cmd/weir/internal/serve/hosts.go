package serve

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// hosts are the names and addresses that requests to a loopback listener, a socket or the admin port may name, in addition
// to those of loopback. A web page can make its own name resolve to 127.0.0.1 (DNS rebinding), where the daemon listens or a tunnel to
// its socket begins, and the browser then treats that as the page's own origin. Its requests still carry the page's name
// as the Host.
type hosts map[string]bool

// parseHosts reads the values of --host. It adds the host of --http if that is a name.
func parseHosts(names []string, listen string) (hosts, error) {
	served := hosts{}
	for _, name := range names {
		host := plainHost(name)
		_, notAddress := netip.ParseAddr(strings.Trim(name, "[]"))
		if host == "" || notAddress != nil && strings.ContainsAny(name, ":/@[] \t") {
			return nil, cli.Misuse(fmt.Errorf("--host %q: not the name of a host", name), "a name or an address, without a scheme or a port, like: --host limits.example.org")
		}
		served[host] = true
	}
	if !strings.HasPrefix(listen, unixPrefix) {
		served[plainHost(listen)] = true
	}
	return served, nil
}

// serves reports whether the listener answers a request with this Host. A request without a Host does not come from a
// browser.
func (h hosts) serves(host string) bool {
	host = plainHost(host)
	if address, err := netip.ParseAddr(host); err == nil && address.IsLoopback() {
		return true
	}
	return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || h[host]
}

// plainHost returns a Host without its port, in canonical form.
func plainHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if address, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return address.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// at returns the filter of a listener, or nil to answer all requests. Where other machines can connect, the program
// cannot know the names that they use.
func (h hosts) at(address net.Addr) func(host string) bool {
	if local(address) {
		return h.serves
	}
	return nil
}

// page returns the filter of a port that serves a page, wherever it listens: these hosts, and the one in its address.
func (h hosts) page(listen string) func(host string) bool {
	own := hosts{}
	maps.Copy(own, h)
	if listen != "" && !strings.HasPrefix(listen, unixPrefix) {
		own[plainHost(listen)] = true
	}
	return own.serves
}

// check refuses names of hosts for a listener that answers all, unless they may be meant for the admin port.
func (h hosts) check(names []string, listen, admin string, address net.Addr) error {
	if h.at(address) != nil || len(names) == 0 || admin != "" {
		return nil
	}
	return cli.Misusef("leave --host out, or listen on this machine alone: --http 127.0.0.1:8080",
		"--host %s with --http %s: other machines can connect to this address, so every host is served", names[0], listen)
}

// reachable returns the address in a form that a client on this machine can use.
func reachable(address net.Addr) string {
	tcp, ok := address.(*net.TCPAddr)
	switch {
	case !ok || len(tcp.IP) != 0 && !tcp.IP.IsUnspecified():
		return address.String()
	case tcp.IP.To4() != nil:
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
}

// place returns the address as a flag has it.
func place(address net.Addr) string {
	if address.Network() == "unix" {
		return unixPrefix + address.String()
	}
	return reachable(address)
}
