package main

import (
	"io"
	"net"
	"time"
)

// The daemon bounds its connections. Storms stay below the bound; a crowd exceeds it.
const (
	mostStorm  = 2500
	mostCrowd  = 4600
	aftermath  = 500 * time.Millisecond // in which the daemon notices closed connections
	silentMost = 200
)

var connectionAttacks = []attack{
	{"silent", "connections that say nothing, half a header, or announce a body and send none", (*attacker).silent},
	{"slow", "requests that arrive a byte at a time", (*attacker).slow},
	{"storm", "thousands of connections", (*attacker).storm},
	{"crowd", "more connections than the daemon has", (*attacker).crowd},
	{"idle", "connections that ask once and stay", (*attacker).idlers},
}

// openings are the texts that a silent client sends before it falls silent.
var openings = []string{
	"",
	"POST /v1/take HTTP/1.1\r\nHos",
	"POST /v1/take HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n",
	"POST /v1/take HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 20000\r\n\r\n",
	"POST /v1/take HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{",
	"POST /v1/take HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n",
	"GET /v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900000\r\n\r\n",
}

// silent holds connections, most of which also hold a place for a large body.
func (a *attacker) silent() {
	for !a.done() {
		first := a.random.IntN(len(openings))
		conns := a.open(a.between(32, silentMost), func(i int) string {
			if i%2 == 0 {
				return openings[2+first%2]
			}
			return openings[(first+i)%len(openings)]
		})
		a.wait(time.Duration(a.between(1, 20)) * time.Second)
		a.leave(conns)
	}
}

// slow sends valid requests a byte at a time.
func (a *attacker) slow() {
	body := bodyOf(request{"prey", "slow", 1})
	text := style{chunked: a.random.IntN(2) == 0}.request("127.0.0.1", takePath, body)
	conns := a.open(a.between(10, 100), func(int) string { return "" })
	defer a.leave(conns)
	for i := 0; i < len(text) && !a.done(); i++ {
		for _, conn := range conns {
			_, _ = io.WriteString(conn, text[i:i+1])
		}
		a.wait(time.Duration(a.between(1, 150)) * time.Millisecond)
	}
}

// storm opens many connections at once and holds them, some after a request.
func (a *attacker) storm() {
	ready := "GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
	conns := a.open(a.between(200, mostStorm), func(i int) string {
		if i%3 == 0 {
			return ready
		}
		return ""
	})
	defer a.leave(conns)
	a.wait(time.Duration(a.between(1, 4000)) * time.Millisecond)
}

// crowd takes all connections, and then some of its clients leave and return. Meanwhile the daemon refuses new
// connections and must serve those in use.
func (a *attacker) crowd() {
	a.world.crowd.Add(1)
	defer a.world.crowd.Add(-1)
	conns := a.openMany(mostCrowd)
	a.wait(time.Duration(a.between(1, 2000)) * time.Millisecond)
	for range a.between(0, 20) {
		more := a.openMany(200)
		old := min(len(more), len(conns))
		closeAll(conns[:old])
		conns = append(conns[old:], more...)
	}
	closeAll(conns)
	time.Sleep(aftermath) // of this crowd, even after the turn
}

// openMany opens connections without a bound.
func (a *attacker) openMany(n int) (conns []net.Conn) {
	for range n {
		if a.done() {
			break
		}
		if conn := a.dial(); conn != nil {
			conns = append(conns, conn)
		}
	}
	return conns
}

// idlers send one request each, stay idle, and send another over the same connection. The daemon may have closed it.
func (a *attacker) idlers() {
	ready := "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
	conns := a.open(a.between(50, 500), func(int) string { return ready })
	defer a.leave(conns)
	a.wait(time.Duration(a.between(1, 3000)) * time.Millisecond)
	for _, conn := range conns {
		_, _ = io.WriteString(conn, ready)
	}
}
