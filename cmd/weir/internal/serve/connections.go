package serve

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
	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// defaultConnections is the default bound. That many idle connections take about 80 MiB.
const defaultConnections = 4096

// spareConnections is the number of further connections, which serve only a refusal for lack of room and the liveness
// check. They close after the answer, or if no request comes in time. The server dismisses any other connection at
// once, so that its client can try elsewhere instead of waiting in the listener's queue.
const spareConnections = 64

// leavingConnections is the number of dismissed connections that are kept open so that their clients can read
// the closing answer.
const leavingConnections = 64

// filesBesides bounds the open files that are not client connections: standard streams, the listener, the state file
// and connections to Redis.
const filesBesides = 128

// connectionsWithin returns the number of connections, up to asked, that fit the open-file limit.
func connectionsWithin(asked int, files uint64) (int, error) {
	const others = spareConnections + leavingConnections + filesBesides
	if files <= others {
		return 0, cli.Fail(fmt.Errorf("serve: the open-file limit is %d, and serve needs at least %d", files, others+1),
			"raise the limit: ulimit -n 8192, or LimitNOFILE=8192 in a systemd unit")
	}
	return int(min(uint64(asked), files-others)), nil
}

// boundConnections lowers the bound on connections to fit the open-file limit, and logs the change.
func (o *options) boundConnections(log *slog.Logger) error {
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
	evictionAge       = time.Second
	silentEvictionAge = 100 * time.Millisecond // its client should have asked at once
)

// connections bounds the connections of a server and dismisses those that must go. A dismissed connection gets a
// closing answer, and none of its requests is decided. A client that has sent a request meanwhile thus knows that it
// was not counted.
type connections struct {
	most int

	mu  sync.Mutex
	all map[*connection]struct{}
	// Each of these is in the order of time, so that a new connection costs the same at any number of open ones. A
	// connection that is in none of them has a request that is arriving or being answered.
	silent  list.List // have sent nothing
	idle    list.List // have sent nothing since their last answer
	spares  list.List // without a place, and no request of them is being answered
	leaving list.List // dismissed, or closed for writing
}

// track adds a new connection.
func (c *connections) track(conn net.Conn) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[*connection]struct{}{}
	}
	tracked := newConnection(conn, c)
	c.all[tracked] = struct{}{}
	c.move(tracked, &c.silent)
	return tracked
}

// begin gives a new connection a place, makes it a spare one, or dismisses it.
func (c *connections) begin(ctx context.Context, conn net.Conn) context.Context {
	now := conn.(*connection)
	if leaves := c.makeRoom(now); leaves != nil {
		leaves.closeWithAnswer()
	}
	if now.spare {
		ctx = api.WithoutRoom(ctx)
	}
	return context.WithValue(ctx, connectionKey{}, now)
}

// connectionKey is the context key of a request's connection.
type connectionKey struct{}

// makeRoom finds the place of a new connection, and returns the connection that it has dismissed for that.
func (c *connections) makeRoom(now *connection) (leaves *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := len(c.all) - c.leaving.Len()
	if open <= c.most {
		return nil
	}
	c.move(now, nil) // it is not the one to leave
	if leaves = c.oldest(&c.silent, silentEvictionAge); leaves == nil {
		leaves = c.oldest(&c.idle, evictionAge)
	}
	if leaves != nil {
		c.move(now, &c.silent)
		c.dismiss(leaves)
		return leaves
	}
	now.spare = true
	if open > c.most+spareConnections {
		if leaves = c.oldest(&c.spares, silentEvictionAge); leaves == nil {
			leaves = now
		}
		c.dismiss(leaves)
	}
	if leaves != now {
		c.move(now, &c.spares)
	}
	return leaves
}

// oldest returns the first connection of a list if it has been there for at least age. It passes over connections
// whose request waits in the system: the server is about to read it. The caller holds the lock.
func (c *connections) oldest(in *list.List, age time.Duration) *connection {
	for first := in.Front(); first != nil; first = in.Front() {
		conn := first.Value.(*connection)
		if time.Since(conn.since) < age {
			return nil
		}
		if !hasUnread(conn.Conn) {
			return conn
		}
		c.move(conn, nil)
	}
	return nil
}

// dismiss makes sure that no request of a connection is decided. It closes the connection that was dismissed longest
// ago if too many are open. The caller holds the lock, releases it, and sends the closing answer.
func (c *connections) dismiss(conn *connection) {
	conn.dismissed = true
	c.move(conn, &c.leaving)
	if c.leaving.Len() > leavingConnections {
		first := c.leaving.Front().Value.(*connection)
		c.forget(first)
		go func() { _ = first.Conn.Close() }() // it waits for the reader, and others wait for the lock
	}
}

// move puts a connection at the end of a list, or into none. The caller holds the lock.
func (c *connections) move(conn *connection, to *list.List) {
	if conn.in != nil {
		conn.in.Remove(conn.place)
	}
	conn.in = nil
	if _, open := c.all[conn]; to != nil && open {
		conn.in, conn.place, conn.since = to, to.PushBack(conn), time.Now()
	}
}

// forget removes a connection that has ended. The caller holds the lock.
func (c *connections) forget(conn *connection) {
	c.move(conn, nil)
	delete(c.all, conn)
}

// begun notes that a part of a request was read. It returns false if the connection was dismissed.
func (c *connections) begun(conn *connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !conn.dismissed && !conn.spare {
		c.move(conn, nil)
	}
	return !conn.dismissed
}

// handle notes that a request will be decided. It returns false if the connection was dismissed.
func (c *connections) handle(conn *connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !conn.dismissed {
		conn.handling = true
		c.move(conn, nil)
	}
	return !conn.dismissed
}

// changed follows the state of a connection's requests.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	if state != http.StateIdle && state != http.StateClosed {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := conn.(*connection)
	if state == http.StateClosed {
		c.forget(now)
		return
	}
	now.handling = false
	c.move(now, &c.idle)
}

// ends notes that the server sends nothing more over a connection, and decides nothing more.
func (c *connections) ends(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !conn.dismissed {
		c.dismiss(conn)
	}
}

// abandon dismisses a connection whose client took too long. It returns false if a request is being answered.
func (c *connections) abandon(conn *connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !conn.handling && !conn.dismissed {
		c.dismiss(conn)
	}
	return conn.dismissed
}

// closeQuiet dismisses the connections that have been without a request for at least age. It returns the number of
// connections with a request, and when the last connection was dismissed that is still open.
func (c *connections) closeQuiet(age time.Duration) (busy int, dismissed time.Time) {
	for _, quiet := range []*list.List{&c.silent, &c.idle, &c.spares} {
		for conn := c.dismissOldest(quiet, age); conn != nil; conn = c.dismissOldest(quiet, age) {
			conn.closeWithAnswer()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.leaving.Back(); last != nil {
		dismissed = last.Value.(*connection).since
	}
	return len(c.all) - c.leaving.Len(), dismissed
}

func (c *connections) dismissOldest(in *list.List, age time.Duration) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := c.oldest(in, age)
	if conn != nil {
		c.dismiss(conn)
	}
	return conn
}

// cut stops reading requests. Clients can read their answers until the deadline.
func (c *connections) cut(deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.all {
		conn.cut(deadline)
	}
}
