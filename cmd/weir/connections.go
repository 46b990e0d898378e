package main

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/api"
)

// defaultConnections is the default bound. That many idle connections take about 80 MiB.
const defaultConnections = 4096

// spareConnections is the number of further connections, which serve only a refusal for lack of room and the liveness
// check. They close after the answer, or if no request comes in time. The server closes any other connection at once,
// so that its client can try elsewhere instead of waiting in the listener's queue.
const spareConnections = 64

// filesBesides bounds the open files that are not client connections: standard streams, the listener, the state file
// and connections to Redis.
const filesBesides = 128

// connectionsWithin returns the number of connections, up to asked, that fit the open-file limit.
func connectionsWithin(asked int, files uint64) (int, error) {
	const others = spareConnections + filesBesides
	if files <= others {
		return 0, errorWithHint(fmt.Errorf("serve: the open-file limit is %d, and serve needs at least %d", files, others+1),
			"raise the limit: ulimit -n 8192, or LimitNOFILE=8192 in a systemd unit")
	}
	return int(min(uint64(asked), files-others)), nil
}

// boundConnections lowers the bound on connections to fit the open-file limit, and logs the change.
func (o *serveOptions) boundConnections(log *slog.Logger) error {
	files, limited := openFiles()
	if !limited {
		return nil
	}
	most, err := connectionsWithin(o.connections, files)
	if err == nil && most < o.connections {
		log.Warn("the open-file limit allows fewer connections than --max-connections", "max_connections", most, "asked", o.connections, "open_files", files)
		o.connections = most
	}
	return err
}

// A new connection may replace one that has been quiet this long, when all places of its kind are taken.
const (
	evictionAge      = time.Second
	spareEvictionAge = 100 * time.Millisecond // its client should ask at once
)

// connections bounds the connections of a server and tracks the quiet ones: those without a request that is arriving
// or being answered.
type connections struct {
	most int

	mu  sync.Mutex
	all map[*connection]struct{}
	// The quiet connections, longest first, so that a new connection costs the same at any number of open ones. One
	// list holds connections with a place, the other those without.
	quiet, quietSpare list.List
}

// track adds a new connection.
func (c *connections) track(conn net.Conn) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[*connection]struct{}{}
	}
	tracked := &connection{Conn: conn, of: c}
	c.all[tracked] = struct{}{}
	c.quieten(tracked)
	return tracked
}

// begin admits a new connection, makes it a spare one, or closes it.
func (c *connections) begin(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := conn.(*connection)
	switch open := len(c.all); {
	case open <= c.most, c.evict(false, evictionAge):
		return ctx
	case open > c.most+spareConnections && !c.evict(true, spareEvictionAge):
		_ = conn.Close() // the server then ends it like any other
	}
	c.stir(now)
	now.spare = true
	c.quieten(now)
	return api.WithoutRoom(ctx)
}

// evict closes the longest quiet connection if it has been quiet for at least age. The caller holds the lock.
func (c *connections) evict(spare bool, age time.Duration) bool {
	first := c.quietOnes(spare).Front()
	if first == nil || time.Since(first.Value.(*connection).quietSince) < age {
		return false
	}
	oldest := first.Value.(*connection)
	c.forget(oldest)
	_ = oldest.Close()
	return true
}

func (c *connections) quietOnes(spare bool) *list.List {
	if spare {
		return &c.quietSpare
	}
	return &c.quiet
}

// quieten marks a connection as quiet from now on. The caller holds the lock.
func (c *connections) quieten(conn *connection) {
	c.stir(conn)
	if _, open := c.all[conn]; open {
		conn.quietSince = time.Now()
		conn.place = c.quietOnes(conn.spare).PushBack(conn)
	}
}

// stir marks a connection as no longer quiet. The caller holds the lock.
func (c *connections) stir(conn *connection) {
	if conn.place != nil {
		c.quietOnes(conn.spare).Remove(conn.place)
		conn.place = nil
	}
}

// forget removes a connection that has ended. The caller holds the lock.
func (c *connections) forget(conn *connection) {
	c.stir(conn)
	delete(c.all, conn)
}

func (c *connections) begun(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stir(conn)
}

// answered marks a connection as quiet after an answer. If another request has already arrived, the server reports it
// within microseconds.
func (c *connections) answered(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quieten(conn)
}

// changed follows the state of a connection's requests.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch now := conn.(*connection); state {
	case http.StateActive:
		c.stir(now)
	case http.StateIdle:
		c.quieten(now)
	case http.StateClosed:
		c.forget(now)
	}
}

// closeQuiet closes the connections that have been quiet for at least age and returns the number left.
func (c *connections) closeQuiet(age time.Duration) (left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, spare := range []bool{false, true} {
		for c.evict(spare, age) {
		}
	}
	return len(c.all)
}

// cut stops reading requests. Clients can read their answers until the deadline.
func (c *connections) cut(deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.all {
		conn.cut(deadline)
	}
}
