// Package resp answers Redis clients: they ask for decisions in the Redis protocol (RESP2 and RESP3).
//
// A connection reads what has arrived, decodes commands, and lets those that decide wait together. It then makes one
// call of the engine for all of them, writes the answers in order, and reads again. So a pipeline of sixteen commands is one
// call, and a lone command waits for nothing. docs/howto/redis-clients.md describes the commands.
package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// Options configure a Server.
type Options struct {
	Desk *decide.Desk
	// Auth says who a client is.
	Auth *auth.Port
	// Clients bounds the connections.
	Clients int
	Log     *slog.Logger
}

// The bounds of one connection.
const (
	idleTimeout      = 10 * time.Minute
	commandTimeout   = 30 * time.Second // for the whole of a command, once it has begun
	strangerTimeout  = 10 * time.Second // to show a token
	writeTimeout     = 30 * time.Second
	handshakeTimeout = 5 * time.Second
	acceptGap        = time.Second // after a connection that was not accepted, as without a free file
)

// mostLarge bounds the commands above usualSpace that have not fully arrived.
const mostLarge = 64

// Server answers on one listener.
type Server struct {
	Options
	limits decide.Limits[cellLimit, *weir.Rule]
	texts  texts
	large  atomic.Int32    // commands that are large and have not fully arrived
	ctx    context.Context // ends with Shutdown
	stop   context.CancelFunc

	mu   sync.Mutex
	open map[*conn]struct{}
	last bool // no connection reads another command
	busy sync.WaitGroup
}

// New returns a server.
func New(o Options) *Server {
	s := &Server{Options: o, open: map[*conn]struct{}{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Serve answers on the listener until Shutdown.
func (s *Server) Serve(on net.Listener) error {
	stop := context.AfterFunc(s.ctx, func() { _ = on.Close() })
	defer stop()
	for {
		accepted, err := on.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			s.Log.Warn("resp: a connection was not accepted", "error", err)
			select {
			case <-s.ctx.Done():
			case <-time.After(acceptGap):
			}
			continue
		}
		if c := s.add(accepted); c != nil {
			go c.serve()
		} else {
			turnAway(accepted)
		}
	}
}

// turnAway ends a connection for lack of room. Only one without encryption gets the reason: the others would have to shake hands.
func turnAway(accepted net.Conn) {
	if _, encrypted := accepted.(*tls.Conn); !encrypted {
		_ = accepted.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = accepted.Write([]byte("-ERR max number of clients reached\r\n"))
	}
	_ = accepted.Close()
}

// add makes a connection, or returns nil for lack of room.
func (s *Server) add(accepted net.Conn) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last || len(s.open) >= s.Clients {
		return nil
	}
	c := newConn(s, accepted)
	s.open[c] = struct{}{}
	s.busy.Add(1)
	return c
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
	s.busy.Done()
}

// Shutdown lets every connection answer what it has read, ends waits, and closes all. The context bounds that.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.last = true
	for c := range s.open {
		_ = c.net.SetReadDeadline(time.Now())
	}
	s.mu.Unlock()
	s.stop()
	done := make(chan struct{})
	go func() { s.busy.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.open {
			_ = c.net.Close()
		}
		return ctx.Err()
	}
}

// wantsMore gives a connection the time to send another command.
func (s *Server) wantsMore(c *conn) error {
	now := time.Now()
	until := now.Add(idleTimeout)
	if len(c.in) > 0 {
		if c.half.IsZero() {
			c.half = now
		}
		until = c.half.Add(commandTimeout)
	}
	if c.stranger() {
		until = c.began.Add(strangerTimeout)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last {
		return net.ErrClosed
	}
	return c.net.SetReadDeadline(until)
}
