package serve

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// A listener that finishes closes once the system's queue has been empty for the first gap, and accepts for a bounded
// time. The second gap is short: after the first gap the listener has also accepted the connections that came while
// this process was not running.
var finishGaps = [...]time.Duration{time.Millisecond, 50 * time.Microsecond}

const finishMost = time.Second

// listener passes connections to their tracker. Closing a listener resets clients in the system's queue whose
// requests may have arrived, so the listener accepts them before it closes.
type listener struct {
	net.Listener
	connections *connections
	finishing   atomic.Bool
}

// deadliner is a listener with a deadline for Accept.
type deadliner interface{ SetDeadline(time.Time) error }

// Accept returns the next connection. It returns net.ErrClosed when the listener finishes and no connection comes.
// The first deadline may be the one that finish sets.
func (l *listener) Accept() (net.Conn, error) {
	for _, gap := range finishGaps {
		if l.finishing.Load() {
			_ = l.Listener.(deadliner).SetDeadline(time.Now().Add(gap))
		}
		conn, err := l.Listener.Accept()
		if err == nil {
			return l.connections.track(conn), nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, err
		}
	}
	if conn := acceptWaiting(l.Listener); conn != nil {
		return l.connections.track(conn), nil
	}
	return nil, net.ErrClosed
}

// finish accepts the connections in the system's queue and then closes the listener. The server has ended by then.
func (l *listener) finish(ended <-chan error) {
	if d, ok := l.Listener.(deadliner); ok {
		refuseHandshakes(l.Listener)
		l.finishing.Store(true)
		_ = d.SetDeadline(time.Now())
		select {
		case <-ended: // the server has closed the listener
			return
		case <-time.After(finishMost):
		}
	}
	_ = l.Close()
	<-ended
}
