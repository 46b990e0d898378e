package redislimit

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"time"
)

// redialEvery is how often connections are given up at most because the server
// behind them only reads.
const redialEvery = 250 * time.Millisecond

// connections are those that Open's client has open. An address may lead to
// another server after a failover, while the connections still lead to the old
// one, which answers READONLY. The client dials again once they are closed.
type connections struct {
	mu     sync.Mutex
	open   map[*connection]time.Time // when each was dialled
	redial time.Time                 // when they were last closed
}

type connection struct {
	net.Conn
	all *connections
}

// dial is rueidis' own way to dial, for a client whose connections are known.
func (c *connections) dial(ctx context.Context, addr string, dialer *net.Dialer, secure *tls.Config) (net.Conn, error) {
	began := time.Now()
	conn, err := dialServer(ctx, addr, dialer, secure)
	if err != nil {
		return nil, err
	}
	known := &connection{conn, c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[*connection]time.Time{}
	}
	c.open[known] = began
	return known, nil
}

// dialServer dials an address, or a socket by its path.
func dialServer(ctx context.Context, addr string, dialer *net.Dialer, secure *tls.Config) (net.Conn, error) {
	switch {
	case strings.HasPrefix(addr, "/"):
		return dialer.DialContext(ctx, "unix", addr)
	case secure == nil:
		return dialer.DialContext(ctx, "tcp", addr)
	}
	return (&tls.Dialer{NetDialer: dialer, Config: secure}).DialContext(ctx, "tcp", addr)
}

// Close also takes the connection off the list.
func (c *connection) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// closeOlder closes the connections that were dialled before an instant, at most
// once every redialEvery.
func (c *connections) closeOlder(instant time.Time) {
	c.mu.Lock()
	if time.Since(c.redial) < redialEvery {
		c.mu.Unlock()
		return
	}
	c.redial = time.Now()
	var old []*connection
	for conn, dialled := range c.open {
		if dialled.Before(instant) {
			old = append(old, conn)
		}
	}
	c.mu.Unlock()
	for _, conn := range old {
		_ = conn.Close()
	}
}

// readOnly says that the server is a replica, which may be another server's
// address by now. A master that lacks replicas stays where it is.
func readOnly(err error) bool { return err != nil && strings.Contains(err.Error(), "READONLY") }
