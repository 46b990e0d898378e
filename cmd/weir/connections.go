package main

import (
	"context"
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
