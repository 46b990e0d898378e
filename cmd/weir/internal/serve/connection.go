package serve

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// connection is one connection of a server.
type connection struct {
	net.Conn
	of *connections

	// The lock of connections protects these fields.
	spare     bool          // refuses requests for lack of room
	handling  bool          // a request is being answered
	dismissed bool          // no further request will be decided
	in        *list.List    // nil while a request arrives or is answered
	place     *list.Element // in that list
	since     time.Time     // when it came into the list

	mu    sync.Mutex
	isCut bool

	closing  atomic.Bool   // closeWithAnswer has begun
	answered chan struct{} // closed after the closing answer
}

func newConnection(conn net.Conn, of *connections) *connection {
	return &connection{Conn: conn, of: of, answered: make(chan struct{})}
}

// Read notices the beginning of a request. It ends a connection that was dismissed, or whose client takes too long.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.of.begun(c) || n == 0 && !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if n == 0 && !c.of.abandon(c) {
		return 0, err
	}
	c.closeWithAnswer()
	c.linger()
	return 0, os.ErrDeadlineExceeded
}

// The bounds of a closing answer. It fits in the system's buffer unless the client reads nothing. A client that is
// still sending has lingerTime to read it before the connection is reset.
const (
	closingTime = 10 * time.Millisecond
	lingerTime  = 500 * time.Millisecond
)

// closingAnswer answers a request that may be on its way. Clients expect status 408, and no other, on a connection
// without a request.
var closingAnswer = func() []byte {
	const body = `{"type":"about:blank","title":"Request Timeout","status":408,"counted":"no",` +
		`"detail":"the connection was closed before a whole request was read; nothing was admitted; ask again over another connection"}` + "\n"
	return fmt.Appendf(nil, "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/problem+json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}()

// closeWithAnswer sends the closing answer over a dismissed connection, ends the sending side and wakes the reader.
func (c *connection) closeWithAnswer() {
	if !c.closing.CompareAndSwap(false, true) {
		<-c.answered
		return
	}
	defer close(c.answered)
	_ = c.Conn.SetWriteDeadline(time.Now().Add(closingTime))
	_, _ = c.Conn.Write(closingAnswer)
	_ = c.closeWrite()
	c.cut(time.Now())
}

// linger reads what the client still sends, because closing a connection with unread bytes resets it.
func (c *connection) linger() {
	_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.Copy(io.Discard, c.Conn)
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
	c.of.ends(c)
	return c.closeWrite()
}

func (c *connection) closeWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
