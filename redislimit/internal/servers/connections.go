package servers

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"time"
)

// RedialEvery is the shortest time between two closings of connections to a read-only server.
const RedialEvery = 250 * time.Millisecond

// connections are the open connections of Open's client. After a failover an address may lead to another server,
// while the connections still lead to the old one, which answers READONLY. The client dials again when they are
// closed.
type connections struct {
	mu     sync.Mutex
	open   map[*connection]time.Time // the time of each dial
	redial time.Time                 // the time of the last closing
}

type connection struct {
	net.Conn
	all *connections
}

// dial dials like rueidis, for a client whose connections are tracked.
func (c *connections) dial(ctx context.Context, addr string, dialer *net.Dialer, secure *tls.Config) (net.Conn, error) {
	began := time.Now()
	conn, err := DialServer(ctx, addr, dialer, secure)
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

// DialServer dials an address or the path of a socket.
func DialServer(ctx context.Context, addr string, dialer *net.Dialer, secure *tls.Config) (net.Conn, error) {
	switch {
	case strings.HasPrefix(addr, "/"):
		return dialer.DialContext(ctx, "unix", addr)
	case secure == nil:
		return dialer.DialContext(ctx, "tcp", addr)
	}
	return (&tls.Dialer{NetDialer: dialer, Config: secure}).DialContext(ctx, "tcp", addr)
}

// Close also removes the connection from the list.
func (c *connection) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// closeOlder closes the connections dialled before an instant, at most once every redialEvery.
func (c *connections) closeOlder(instant time.Time) {
	c.mu.Lock()
	if time.Since(c.redial) < RedialEvery {
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

// readOnly reports whether the server is a replica, so that its address may by now lead to another server. A master
// that lacks replicas keeps its address.
func readOnly(err error) bool { return err != nil && strings.Contains(err.Error(), "READONLY") }
