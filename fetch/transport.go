package fetch

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// NewTransport returns a transport for a crawl. Unless allowPrivate, it refuses to connect to private addresses: it
// looks at the address that it dials, so a name cannot resolve to another one after a check. It uses no proxy, and
// asks for bodies as they are, so that a bound on bytes is one on bytes received.
func NewTransport(allowPrivate bool) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if !allowPrivate {
		dialer.Control = refusePrivate
	}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        time.Minute,
		MaxIdleConns:           2 * maxInFlight,
		MaxIdleConnsPerHost:    4,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// refusePrivate is called with each address before it is dialed.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("fetch: dial %q: %w", address, err)
	}
	if kind := privateKind(at.Addr()); kind != "" {
		return &PrivateAddressError{Address: at.Addr().Unmap(), Kind: kind}
	}
	return nil
}
