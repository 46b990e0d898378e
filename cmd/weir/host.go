package main

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// hosts are the names and addresses that requests to a loopback listener may be
// for, besides those of loopback. A page of the web can have its own name
// resolve to 127.0.0.1 (DNS rebinding) and is then no foreign page to the
// browser; what it asks carries its name as the Host all the same.
type hosts map[string]bool

// parseHosts reads the values of --host, and the host of --http, which is served
// too if it is a name.
func parseHosts(names []string, listen string) (hosts, error) {
	served := hosts{}
	for _, name := range names {
		host := plainHost(name)
		_, notAddress := netip.ParseAddr(strings.Trim(name, "[]"))
		if host == "" || notAddress != nil && strings.ContainsAny(name, ":/@[] \t") {
			return nil, usageWithHint(fmt.Errorf("--host %q: not the name of a host", name), "a name or an address, without a scheme or a port, like: --host limits.example.org")
		}
		served[host] = true
	}
	served[plainHost(listen)] = true
	return served, nil
}

// serves says whether a request with the Host is answered. One without any comes
// from no browser.
func (h hosts) serves(host string) bool {
	host = plainHost(host)
	if address, err := netip.ParseAddr(host); err == nil && address.IsLoopback() {
		return true
	}
	return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || h[host]
}

// plainHost is a Host without its port, written in one way.
func plainHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if address, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return address.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// servedHosts says which requests a listener answers; nil is all of them. Where
// other machines may ask, nobody can tell by which names they do.
func (o *serveOptions) servedHosts(named hosts, address net.Addr) (func(host string) bool, error) {
	if tcp, ok := address.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return named.serves, nil
	}
	if len(o.hosts) > 0 {
		return nil, usageWithHint(fmt.Errorf("--host %s with --http %s: other machines can ask there, and every host is served", o.hosts[0], o.http),
			"leave --host out, or listen for this machine alone: --http 127.0.0.1:8080")
	}
	return nil, nil
}
