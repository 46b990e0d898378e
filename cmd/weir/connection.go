package main

import (
	"container/list"
	"net"
	"sync"
	"time"
)

// connection is one of a server.
type connection struct {
	net.Conn
	of *connections

	// These belong to the lock of connections.
	spare      bool          // answers that there is no room
	place      *list.Element // among the quiet ones; nil while a request arrives or is answered
	quietSince time.Time

	mu    sync.Mutex
	isCut bool
}

// Read notices where a request begins.
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

// SetReadDeadline changes nothing once the connection is cut.
func (c *connection) SetReadDeadline(t time.Time) error {
	return c.unlessCut(c.Conn.SetReadDeadline, t)
}

// SetWriteDeadline changes nothing once the connection is cut.
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

// CloseWrite lets the server end its side first, so that a client which still
// sends can read its answer. Nothing else is answered after it.
func (c *connection) CloseWrite() error {
	c.of.answered(c)
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
