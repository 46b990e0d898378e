package main

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// How long the queue of the system is empty before a listener that finishes is
// closed, and how long it accepts at most. The second gap is short: after the
// first, what came while this process did not run is accepted, too.
var finishGaps = [...]time.Duration{time.Millisecond, 50 * time.Microsecond}

const finishMost = 100 * time.Millisecond

// listener hands out connections that connections knows. Closing a listener
// resets clients in the system's queue, whose requests may have arrived, so it
// finishes first.
type listener struct {
	net.Listener
	connections *connections
	finishing   atomic.Bool
}

// deadliner is a listener that can wait for a limited time.
type deadliner interface{ SetDeadline(time.Time) error }

// Accept returns the next connection, or net.ErrClosed if the listener finishes
// and none comes. The first deadline may be that of finish.
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
	return nil, net.ErrClosed
}

// finish accepts what is in the queue of the system and closes the listener. The
// server that serves it has ended then.
func (l *listener) finish(ended <-chan error) {
	if d, ok := l.Listener.(deadliner); ok {
		l.finishing.Store(true)
		_ = d.SetDeadline(time.Now())
		select {
		case <-ended: // which has closed it
			return
		case <-time.After(finishMost):
		}
	}
	_ = l.Close()
	<-ended
}
