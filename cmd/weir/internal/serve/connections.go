package serve

import (
	"container/list"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// defaultConnections is the default bound. That many idle connections take about 80 MiB.
const defaultConnections = 4096

// spareConnections is the number of further connections, which serve only a refusal for lack of room and the liveness
// check. They close after the answer, or if no request comes in time. Any other connection is closed at once, so that
// its client can try elsewhere instead of waiting in the listener's queue.
const spareConnections = 64

// A new connection may replace one that has been quiet this long, when all places of its kind are taken.
const (
	evictionAge       = time.Second
	silentEvictionAge = 100 * time.Millisecond // its client should have asked at once
)

// connections bounds the connections of a server and closes those that must go.
type connections struct {
	most int

	mu  sync.Mutex
	all map[*connection]struct{}
	// Each of these is in the order of time, so that a new connection costs the same at any number of open ones. A
	// connection that is in none of them has a request that is arriving or being answered.
	silent list.List // have sent nothing
	idle   list.List // have sent nothing since their last answer
	spares list.List // without a place, and no request of them is being answered
}

// connection is one connection of a server. The lock of connections protects its fields.
type connection struct {
	net.Conn
	of    *connections
	spare bool          // refuses requests for lack of room
	in    *list.List    // or nil
	place *list.Element // in that list
	since time.Time     // when it came into the list
}

// listener passes connections to their bound.
type listener struct {
	net.Listener
	open *connections
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.open.add(conn), nil
}

// add gives a new connection a place, or that of a quiet one. Otherwise it makes it a spare one, or closes it.
func (c *connections) add(conn net.Conn) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	added, list := &connection{Conn: conn, of: c}, &c.silent
	if len(c.all) >= c.most && !c.evict(&c.silent, silentEvictionAge) && !c.evict(&c.idle, evictionAge) {
		added.spare, list = true, &c.spares
		if len(c.all) >= c.most+spareConnections && !c.evict(&c.spares, silentEvictionAge) {
			_ = conn.Close()
			return added
		}
	}
	if c.all == nil {
		c.all = map[*connection]struct{}{}
	}
	c.all[added] = struct{}{}
	c.move(added, list)
	return added
}

// evict closes the first connection of a list if it has been there for at least age. The caller holds the lock.
func (c *connections) evict(from *list.List, age time.Duration) bool {
	first := from.Front()
	if first == nil || time.Since(first.Value.(*connection).since) < age {
		return false
	}
	evicted := first.Value.(*connection)
	c.forget(evicted)
	go func() { _ = evicted.Conn.Close() }() // it waits for the reader, and others wait for the lock
	return true
}

// move puts a connection at the end of a list, or into none. The caller holds the lock.
func (c *connections) move(conn *connection, to *list.List) {
	if conn.in != nil {
		conn.in.Remove(conn.place)
	}
	if conn.in = to; to != nil {
		conn.place, conn.since = to.PushBack(conn), time.Now()
	}
}

// forget removes a connection that ends. The caller holds the lock.
func (c *connections) forget(conn *connection) {
	c.move(conn, nil)
	delete(c.all, conn)
}

// Read notices the beginning of a request. A request that arrives over an evicted connection is not decided.
func (conn *connection) Read(b []byte) (int, error) {
	n, err := conn.Conn.Read(b)
	conn.of.mu.Lock()
	defer conn.of.mu.Unlock()
	if _, open := conn.of.all[conn]; n > 0 && !open {
		return 0, io.EOF
	}
	if n > 0 && !conn.spare {
		conn.of.move(conn, nil)
	}
	return n, err
}

// CloseWrite lets net/http end its side first, so that a client that is still sending can read its answer. The
// connection needs no place from then on.
func (conn *connection) CloseWrite() error {
	conn.of.mu.Lock()
	conn.of.forget(conn)
	conn.of.mu.Unlock()
	if half, ok := conn.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// under returns the connection below encryption.
func under(conn net.Conn) *connection {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return conn.(*connection)
}

// mark tells the API of connections without a place.
func (c *connections) mark(ctx context.Context, conn net.Conn) context.Context {
	if under(conn).spare {
		return api.WithoutRoom(ctx)
	}
	return ctx
}

// changed follows the state of a connection's requests.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := under(conn)
	if _, open := c.all[now]; !open {
		return
	}
	switch state {
	case http.StateActive:
		c.move(now, nil)
	case http.StateIdle:
		c.move(now, &c.idle)
	case http.StateClosed:
		c.forget(now)
	}
}

// closeQuiet closes the connections that have been without a request for at least age, or for at least silent if they never had one.
// It returns the number of others.
func (c *connections) closeQuiet(age, silent time.Duration) (busy int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.evict(&c.silent, silent) || c.evict(&c.idle, age) || c.evict(&c.spares, age) {
	}
	return len(c.all)
}

// cut ends the arrival of requests.
func (c *connections) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.all {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// otherFiles bounds the open files that are not client connections: standard streams, the listener, the state file,
// connections to Redis, spare connections and those about to close.
const otherFiles = 256

// connectionsWithin returns the number of connections, up to asked, that each of some ports can have by the open-file limit.
func connectionsWithin(asked int, ports, files uint64) (int, error) {
	if files < otherFiles+ports {
		return 0, cli.Fail(fmt.Errorf("serve: the open-file limit is %d, and serve needs at least %d", files, otherFiles+ports),
			"raise the limit: ulimit -n 8192, or LimitNOFILE=8192 in a systemd unit")
	}
	return int(min(uint64(asked), (files-otherFiles)/ports)), nil
}

// boundConnections lowers the bound on the connections of each port to fit the open-file limit, and logs the change.
func boundConnections(asked int, ports uint64, log *slog.Logger) (most int, err error) {
	files, limited := openFiles()
	if !limited {
		return asked, nil
	}
	most, err = connectionsWithin(asked, ports, files)
	if err == nil && most < asked {
		log.Warn("the open-file limit allows fewer connections than --max-connections", "max_connections", most, "asked", asked, "open_files", files)
	}
	return most, err
}
