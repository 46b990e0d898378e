package main

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link carries the connections of one process to one world, and damages them.
type link struct {
	listener net.Listener
	pairing  sync.Mutex

	stalled atomic.Int64 // unix ns until which replies wait
	slowed  atomic.Int64 // unix ns until which everything is delayed
	delay   atomic.Int64 // ns, of each direction
	cuts    atomic.Int64 // how many connections to cut in the middle of a reply
}

func startLink() (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &link{listener: listener}, nil
}

// dial connects to a server through the link. A server that refuses is refused here.
func (l *link) dial(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
	server, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	near, far, err := l.pair(ctx, dialer)
	if err != nil {
		_ = server.Close()
		return nil, err
	}
	go l.requests(server, far)
	go l.replies(far, server)
	return near, nil
}

// pair returns the two ends of a connection.
func (l *link) pair(ctx context.Context, dialer *net.Dialer) (near, far net.Conn, err error) {
	l.pairing.Lock()
	defer l.pairing.Unlock()
	near, err = dialer.DialContext(ctx, "tcp", l.listener.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	far, err = l.listener.Accept()
	return near, far, err
}

// requests passes on what the client says, also after a cut.
func (l *link) requests(server, client net.Conn) {
	defer func() { _ = server.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		l.slow()
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// replies passes on what the server says, until a cut. Then it passes on half of a reply and closes the connection.
func (l *link) replies(client, server net.Conn) {
	defer func() { _ = client.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		l.slow()
		for wait := l.stalled.Load() - time.Now().UnixNano(); wait > 0; wait = l.stalled.Load() - time.Now().UnixNano() {
			time.Sleep(min(time.Duration(wait), 20*time.Millisecond))
		}
		if l.takeCut() {
			_, _ = client.Write(buffer[:n/2])
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// slow delays what passes, while the link is slowed.
func (l *link) slow() {
	if time.Now().UnixNano() < l.slowed.Load() {
		time.Sleep(time.Duration(l.delay.Load()))
	}
}

func (l *link) takeCut() bool {
	for {
		left := l.cuts.Load()
		if left <= 0 {
			return false
		}
		if l.cuts.CompareAndSwap(left, left-1) {
			return true
		}
	}
}
