package httplimit

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
)

// heldConn is a hijacked connection whose request has not ended until it is closed.
type heldConn struct {
	net.Conn
	end func() // ends the request; it does not refer to the connection
}

// newHeldConn returns a connection whose Close ends its request. If the program forgets it, the collector closes the
// connection below, which ends the request, too.
func newHeldConn(conn net.Conn, end func()) *heldConn {
	c := &heldConn{conn, end}
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	switch below := conn.(type) { // the handler may keep only what refers to it, such as the buffers
	case *net.TCPConn:
		runtime.AddCleanup(below, forgotten, end)
	case *net.UnixConn:
		runtime.AddCleanup(below, forgotten, end)
	default:
		runtime.AddCleanup(c, forgotten, end)
	}
	return c
}

// forgotten ends a request. No caller could recover a panic there, for example of a log handler, and it would end the
// program.
func forgotten(end func()) {
	go func() {
		defer func() { _ = recover() }()
		end()
	}()
}

// Close closes the connection and ends its request.
func (c *heldConn) Close() error {
	defer c.end()
	return c.Conn.Close()
}

// NetConn returns the connection below, as in tls.Conn. Closing that one ends the request only when it is collected.
func (c *heldConn) NetConn() net.Conn { return c.Conn }

// ReadFrom lets the connection below copy in its own way.
func (c *heldConn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

// CloseWrite closes one direction, where the connection below can.
func (c *heldConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}
