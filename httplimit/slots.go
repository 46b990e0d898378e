package httplimit

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// slots are the units that a request holds until it ends. They do not refer to its connection, so that the collector
// can find a hijacked one that its handler has forgotten. A nil *slots holds nothing.
type slots struct {
	*limiter
	requests []weir.Request // for the slots alone
	lease    uint64
	acquired *pace.Acquired // holds the slots of a request that has waited
	unhold   func()         // ends the renewal of the slots
	once     sync.Once
}

func newSlots(v *visit) *slots {
	s := &slots{limiter: v.limiter, lease: v.lease, acquired: v.acquired, unhold: func() {}}
	for i, q := range v.requests {
		if v.sets[i].slots != nil && q.Cost != 0 {
			q.Rule = v.sets[i].slots
			s.requests = append(s.requests, q)
		}
	}
	if len(s.requests) == 0 && s.acquired == nil {
		return nil
	}
	return s
}

// hold has the engine renew the slots, if they expire there.
func (s *slots) hold(since time.Time) {
	if s == nil || s.acquired != nil { // the reservation renews its own
		return
	}
	if engine, ok := weir.Find[weir.Holder](s.Engine); ok {
		_, s.unhold = engine.Hold(since, s.call())
	}
}

// call returns the slots as an engine takes them.
func (s *slots) call() weir.Call { return weir.Call{Requests: s.requests, Lease: s.lease} }

// release releases the slots once. The reservation of a request that has waited lets the next one have them.
func (s *slots) release(ctx context.Context) {
	if s != nil {
		s.once.Do(func() { s.releaseNow(ctx) })
	}
}

func (s *slots) releaseNow(ctx context.Context) {
	give := s.giveBack
	if s.acquired != nil {
		give = s.acquired.Done
	}
	err := settle(ctx, true, give)
	s.unhold()
	if err != nil {
		s.watch.failed(err)
	}
}

func (s *slots) giveBack(ctx context.Context) error {
	_, err := s.Engine.Do(ctx, weir.Call{Op: weir.OpReturn, Requests: s.requests, Lease: s.lease})
	return err
}

// settleWithin bounds a settlement, which continues after its client has left.
const settleWithin = time.Second

// settle calls the engine, and calls it again after an error if that cannot count twice.
func settle(ctx context.Context, again bool, send func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	err := send(ctx)
	if err != nil && (again || !weir.MayHaveCounted(err)) {
		err = send(ctx)
	}
	return err
}

// background runs a settlement that nobody waits for. Nobody would recover a panic there, for example of a log handler,
// which would end the program.
func background(settlement func()) {
	go func() {
		defer func() { _ = recover() }()
		settlement()
	}()
}

// heldConn is a hijacked connection whose request holds slots until it is closed.
type heldConn struct {
	net.Conn
	slots *slots
}

// newHeldConn returns a connection whose Close releases the slots. If the program forgets it, the collector closes the
// connection below, and its slots return, too.
func newHeldConn(conn net.Conn, held *slots) *heldConn {
	c := &heldConn{conn, held}
	forgotten := func(s *slots) { background(func() { s.release(context.Background()) }) }
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	switch below := conn.(type) { // the handler may keep only what refers to it, such as the buffers
	case *net.TCPConn:
		runtime.AddCleanup(below, forgotten, held)
	case *net.UnixConn:
		runtime.AddCleanup(below, forgotten, held)
	default:
		runtime.AddCleanup(c, forgotten, held)
	}
	return c
}

// Close closes the connection and releases the slots.
func (c *heldConn) Close() error {
	defer c.slots.release(context.Background())
	return c.Conn.Close()
}

// NetConn returns the connection below, as in tls.Conn. Closing that one releases the slots only when it is collected.
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
