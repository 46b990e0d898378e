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

// defaultConnections take some 80 MiB while they wait for requests.
const defaultConnections = 4096

// spareConnections is how many more are answered that there is no room, and
// whether the process is alive. They end with the answer, or when no request
// comes in time. All others are closed at once: a client that sees that can go
// elsewhere, which one left waiting in the queue of the listener cannot.
const spareConnections = 64

// filesBesides is how many files are open besides connections at most: standard
// streams, the listener, the state file, and connections to Redis.
const filesBesides = 128

// connectionsWithin is how many of the connections asked for fit the files that
// a process may open.
func connectionsWithin(asked int, files uint64) (int, error) {
	const others = spareConnections + filesBesides
	if files <= others {
		return 0, errorWithHint(fmt.Errorf("serve: this process may open %d files, and needs %d or more", files, others+1),
			"raise the limit: ulimit -n 8192, or LimitNOFILE=8192 in a systemd unit")
	}
	return int(min(uint64(asked), files-others)), nil
}

// boundConnections lowers the bound on connections to what the open-file limit
// leaves room for, and says so.
func (o *serveOptions) boundConnections(log *slog.Logger) error {
	files, limited := openFiles()
	if !limited {
		return nil
	}
	most, err := connectionsWithin(o.connections, files)
	if err == nil && most < o.connections {
		log.Warn("fewer connections than asked for: the open-file limit is too low", "max_connections", most, "asked", o.connections, "open_files", files)
		o.connections = most
	}
	return err
}

// How long a connection is quiet before a new one may take its place, when all
// places of its kind are taken.
const (
	evictionAge      = time.Second
	spareEvictionAge = 100 * time.Millisecond // it should ask at once
)

// connections bounds how many a server has at once, and knows which of them are
// quiet: no part of a request has arrived that is not answered yet.
type connections struct {
	most int

	mu  sync.Mutex
	all map[*connection]struct{}
	// Those that are quiet, the longest first, so that a new connection costs the
	// same however many are open: served ones, and those without a place.
	quiet, quietSpare list.List
}

// track adds a connection that was just accepted.
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

// begin decides about a connection that was just accepted.
func (c *connections) begin(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := conn.(*connection)
	switch open := len(c.all); {
	case open <= c.most, c.evict(false, evictionAge):
		return ctx
	case open > c.most+spareConnections && !c.evict(true, spareEvictionAge):
		_ = conn.Close() // which ends it like any other
	}
	c.stir(now)
	now.spare = true
	c.quieten(now)
	return api.WithoutRoom(ctx)
}

// evict closes the connection that was quiet for longest, and at least for age.
// The caller holds the lock.
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

// quieten begins quiet, also for a connection that is quiet already. The caller
// holds the lock.
func (c *connections) quieten(conn *connection) {
	c.stir(conn)
	if _, open := c.all[conn]; open {
		conn.quietSince = time.Now()
		conn.place = c.quietOnes(conn.spare).PushBack(conn)
	}
}

// stir ends quiet. The caller holds the lock.
func (c *connections) stir(conn *connection) {
	if conn.place != nil {
		c.quietOnes(conn.spare).Remove(conn.place)
		conn.place = nil
	}
}

// forget is for a connection that ends. The caller holds the lock.
func (c *connections) forget(conn *connection) {
	c.stir(conn)
	delete(c.all, conn)
}

func (c *connections) begun(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stir(conn)
}

// answered begins quiet. Of a further request that has arrived already, the
// server says so within microseconds.
func (c *connections) answered(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quieten(conn)
}

// changed follows the requests of a connection.
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

// count is how many are open.
func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// closeQuiet closes those that were quiet for at least age and returns how many
// are left.
func (c *connections) closeQuiet(age time.Duration) (left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, spare := range []bool{false, true} {
		for c.evict(spare, age) {
		}
	}
	return len(c.all)
}

// cut ends the arrival of requests. Clients have until the deadline to take their
// answers.
func (c *connections) cut(deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.all {
		conn.cut(deadline)
	}
}
