package localredis

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
)

// farAway is what a process of links reads: the server to which it leads, and how long bytes take there.
type farAway struct {
	Server string
	Delay  time.Duration
}

// StartLink starts a link to a server in a process of its own and returns its address. The program calls ServeLinks if LinkFlag is its
// only argument. In the process of the callers it would
// wait until thousands of them have run, and add that to the distance.
func StartLink(server string, delay time.Duration) (addr string, end func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	child, err := measure.StartChild[farAway, string](program, LinkFlag)
	if err != nil {
		return "", nil, err
	}
	addr, err = child.Ask(farAway{server, delay})
	if err != nil {
		child.Stop()
		return "", nil, err
	}
	return addr, child.Stop, nil
}

// LinkFlag is the argument of a process of links.
const LinkFlag = "-link"

// ServeLinks starts the links that its input asks for. They end with the process. A nap keeps one of Go's processors
// until the runtime notices, for up to 10 ms. So there are more of them than pipes.
func ServeLinks() error {
	runtime.GOMAXPROCS(64)
	return measure.Serve(os.Stdin, os.Stdout, func(f farAway) (string, error) {
		l, err := newLink(f.Server, f.Delay)
		if err != nil {
			return "", fmt.Errorf("link to %s: %w", f.Server, err)
		}
		return l.addr(), nil
	})
}

// link passes bytes on after a delay, in each direction.
type link struct {
	listener net.Listener
	server   string
	delay    time.Duration
}

func newLink(server string, delay time.Duration) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener, server, delay}
	go l.accept()
	return l, nil
}

func (l *link) addr() string { return l.listener.Addr().String() }

func (l *link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		go l.pipe(server, client)
		go l.pipe(client, server)
	}
}

// chunk is bytes and the time at which they arrive.
type chunk struct {
	at   time.Time
	room *[chunkSize]byte
	n    int
}

// Chunks are used again. Otherwise the link would have the collector run most of the time, between those that it joins.
const chunkSize = 64 << 10

var rooms = sync.Pool{New: func() any { return new([chunkSize]byte) }}

func (l *link) pipe(to, from net.Conn) {
	chunks := make(chan chunk, 1<<14)
	go func() {
		defer func() { _ = to.Close() }()
		nap, awake := naps()
		defer awake()
		for c := range chunks {
			if wait := time.Until(c.at); wait > 0 {
				nap(wait)
			}
			if _, err := to.Write(c.room[:c.n]); err != nil {
				_ = from.Close() // ends the reader
			}
			rooms.Put(c.room)
		}
	}()
	defer close(chunks)
	for {
		room := rooms.Get().(*[chunkSize]byte)
		n, err := from.Read(room[:])
		if n > 0 {
			chunks <- chunk{time.Now().Add(l.delay), room, n}
		}
		if err != nil {
			return
		}
	}
}
