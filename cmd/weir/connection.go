package main

import (
	"container/list"
	"net"
	"sync"
	"time"
)

// connection is one connection of a server.
type connection struct {
	net.Conn
	of *connections

	// The lock of connections protects these fields.
	spare      bool          // refuses requests for lack of room
	place      *list.Element // in the list of quiet connections; nil while a request arrives or is answered
	quietSince time.Time

	mu    sync.Mutex
	isCut bool
}

// Read notices the beginning of a request.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.of.begun(c)
	}
	return n, err
}

func (c *connection) cut(deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = true
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	_ = c.Conn.SetWriteDeadline(deadline)
}

// SetReadDeadline has no effect after the connection is cut.
func (c *connection) SetReadDeadline(t time.Time) error {
	return c.unlessCut(c.Conn.SetReadDeadline, t)
}

// SetWriteDeadline has no effect after the connection is cut.
func (c *connection) SetWriteDeadline(t time.Time) error {
	return c.unlessCut(c.Conn.SetWriteDeadline, t)
}

func (c *connection) unlessCut(set func(time.Time) error, t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isCut {
		return nil
	}
	return set(t)
}

// CloseWrite lets the server end its side first, so that a client that is still sending can read its answer. The
// connection answers no later request.
func (c *connection) CloseWrite() error {
	c.of.answered(c)
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
