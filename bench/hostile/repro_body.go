package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// bodyFaults concern logs and bodies.
var bodyFaults = []knownFault{
	{"a log without a reader: a take, SIGTERM, and what was saved of 3 units", "200 in 0.0 s; still runs 25 s after SIGTERM; 0 in the file", (*prober).stuckLog},
	{"the same while Redis is gone: three takes", "no answer in 30.0 s, no answer in 30.0 s, no answer in 30.0 s", (*prober).stuckLogAndRedis},
	{"32 connections announce a body and are silent: requests of others", "chunked 200 in 14.7 s, 20 KB 200 in 14.7 s, small 200 in 0.0 s", (*prober).gate},
	{"500 clients ask in chunks behind them and leave: their connections after 1 s, their decisions after 17 s", "525 connections left; 0 decisions at once, 499 more later", (*prober).vanished},
	{"70 clients do so where 100 connections are served: when a small take is admitted", "after 15.3 s", (*prober).vanishedSmall},
}

func (p *prober) stuckLog() string {
	file := p.file()
	d := p.daemon("--state", file, "--state-every", "0", "--rule", slowRule)
	if err := d.log.stall(); err != nil {
		return err.Error()
	}
	take := ask(d, style{}, request{"slow", "q", 3})
	return fmt.Sprintf("%s; %s; %s", take, stop(d), used(file, slowRule, "q"))
}

func (p *prober) stuckLogAndRedis() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err.Error()
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	redis := exec.Command("redis-server", "--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--save", "", "--dir", p.folder)
	if err := redis.Start(); err != nil {
		return err.Error()
	}
	gone := func() {
		_ = redis.Process.Kill()
		_ = redis.Wait()
	}
	defer gone()
	time.Sleep(500 * time.Millisecond)
	d := p.daemon("--engine", fmt.Sprintf("redis://127.0.0.1:%d", port))
	defer d.kill()
	if err := d.log.stall(); err != nil {
		return err.Error()
	}
	gone()
	time.Sleep(300 * time.Millisecond)
	var takes []string
	for range 3 {
		takes = append(takes, ask(d, style{}, request{"default", "q", 1}))
	}
	return strings.Join(takes, ", ")
}

// announce opens connections that announce a body and send none.
func announce(d *daemon, n int, header string) (conns []net.Conn) {
	for range n {
		if conn, err := net.Dial("tcp", d.address); err == nil {
			_, _ = io.WriteString(conn, "POST /v1/take HTTP/1.1\r\nHost: 127.0.0.1\r\n"+header+"\r\n\r\n")
			conns = append(conns, conn)
		}
	}
	return conns
}

func (p *prober) gate() string {
	d := p.daemon()
	defer d.kill()
	defer closeAll(announce(d, 32, "Content-Length: 20000"))
	time.Sleep(300 * time.Millisecond)
	styles := []struct {
		name string
		how  style
	}{{"chunked", style{chunked: true}}, {"20 KB", style{large: true}}, {"small", style{}}}
	shown := make([]string, len(styles))
	var all sync.WaitGroup
	for i, s := range styles {
		all.Go(func() { shown[i] = s.name + " " + ask(d, s.how, request{"default", "h", 1}) })
	}
	all.Wait()
	return strings.Join(shown, ", ")
}

// leave sends chunked requests after silent connections, and closes.
func leave(d *daemon, n int) (silent []net.Conn) {
	silent = announce(d, 32, "Transfer-Encoding: chunked")
	time.Sleep(200 * time.Millisecond)
	text := style{chunked: true}.request("127.0.0.1", takePath, bodyOf(request{"default", "h", 1}))
	var conns []net.Conn
	for range n {
		if conn, err := net.Dial("tcp", d.address); err == nil {
			_, _ = io.WriteString(conn, text)
			conns = append(conns, conn)
		}
	}
	closeAll(conns)
	return silent
}

func (p *prober) vanished() string {
	d := p.daemon()
	defer d.kill()
	defer closeAll(leave(d, 500))
	time.Sleep(time.Second)
	waiting, early := closeWaits(d.address), decisions(d)
	time.Sleep(16 * time.Second)
	return fmt.Sprintf("%d connections left; %d decisions at once, %d more later", waiting, early, decisions(d)-early)
}

// closeWaits counts connections to an address whose client has closed.
func closeWaits(address string) (n int) {
	_, port, _ := net.SplitHostPort(address)
	var number int
	_, _ = fmt.Sscan(port, &number)
	list, _ := os.ReadFile("/proc/net/tcp")
	for line := range strings.Lines(string(list)) {
		f := strings.Fields(line)
		if len(f) > 3 && f[3] == "08" && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", number)) {
			n++
		}
	}
	return n
}

func decisions(d *daemon) (n int64) {
	var c client
	defer c.close()
	reported, err := statistics(&c, d)
	if err != nil {
		return -1
	}
	for _, one := range reported {
		n += one.Decisions
	}
	return n
}

func (p *prober) vanishedSmall() string {
	d := p.daemon("--max-connections", "100")
	defer d.kill()
	since := time.Now()
	defer closeAll(leave(d, 70))
	time.Sleep(500 * time.Millisecond)
	for time.Since(since) < 40*time.Second {
		var c client
		r := c.ask(d.address, takePath, bodyOf(request{"default", "n", 1}), style{})
		c.close()
		if r.outcome == answered && r.status == http.StatusOK {
			return fmt.Sprintf("after %.1f s", time.Since(since).Seconds())
		}
		time.Sleep(500 * time.Millisecond)
	}
	return "not within 40 s"
}
