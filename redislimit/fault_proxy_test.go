package redislimit

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy forwards a client's connections to a server and cuts them in the middle of a reply, after the server has
// executed the command.
type proxy struct {
	addr     string
	server   atomic.Value // string: where new connections lead
	listener net.Listener
	cut      atomic.Bool  // the next reply is the last of its connection
	cutAfter atomic.Value // string: the connection of the next request with this text ends in the reply
	cuts     atomic.Int64
	stall    atomic.Bool  // replies wait
	delay    atomic.Int64 // nanoseconds that each reply takes
	rewrite  atomic.Value // func([]byte) []byte: what becomes of a reply

	mu    sync.Mutex
	conns []net.Conn
	group sync.WaitGroup
}

func startProxy(t *testing.T, server string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: listener.Addr().String(), listener: listener}
	p.server.Store(server)
	p.group.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// warmUp has an engine open all its connections, and the server learn the script. The next call is then the only one
// that a fault of the proxy hits.
func warmUp(t *testing.T, engine *Engine) {
	t.Helper()
	rule := mustRule(t, "warm=fixed window 5/300d")
	for range 200 {
		if _, err := engine.Peek(t.Context(), rule.For("k", 0)); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.group.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server.Load().(string))
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		doomed := new(atomic.Bool)
		p.group.Go(func() { p.requests(server, client, doomed) })
		p.group.Go(func() { p.replies(client, server, doomed) })
	}
}

// requests forwards what the client says, also after a cut.
func (p *proxy) requests(server, client net.Conn, doomed *atomic.Bool) {
	defer func() { _ = server.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if text, _ := p.cutAfter.Load().(string); text != "" && bytes.Contains(buffer[:n], []byte(text)) && p.cutAfter.CompareAndSwap(text, "") {
			doomed.Store(true) // before the server can answer
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// replies forwards the server's replies until the cut. Then it forwards half of one reply and closes the connection.
func (p *proxy) replies(client, server net.Conn, doomed *atomic.Bool) {
	defer func() { _ = client.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		for p.stall.Load() {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(p.delay.Load()))
		if doomed.Load() || p.cut.CompareAndSwap(true, false) {
			p.cuts.Add(1)
			_, _ = client.Write(buffer[:n/2])
			return
		}
		reply := buffer[:n]
		if rewrite, ok := p.rewrite.Load().(func([]byte) []byte); ok {
			reply = rewrite(reply)
		}
		if _, err := client.Write(reply); err != nil {
			return
		}
	}
}
