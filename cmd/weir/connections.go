package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

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

// connections bounds how many a server has at once.
type connections struct {
	most int64
	open atomic.Int64
}

// begin decides about a connection that was just accepted.
func (c *connections) begin(ctx context.Context, conn net.Conn) context.Context {
	switch open := c.open.Add(1); {
	case open > c.most+spareConnections:
		_ = conn.Close() // which ends it like any other
	case open > c.most:
		return api.WithoutRoom(ctx)
	}
	return ctx
}

// changed counts those that have ended.
func (c *connections) changed(_ net.Conn, state http.ConnState) {
	if state == http.StateClosed {
		c.open.Add(-1)
	}
}
