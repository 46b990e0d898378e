package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// stopFaults concern stops and signals.
var stopFaults = []knownFault{
	{"a stop (grace 3 s) with a silent connection", "exit 1 after 3.0 s, 3 in the file", func(p *prober) string { return p.grace("", "") }},
	{"a stop with half a header", "exit 1 after 3.0 s, 3 in the file", func(p *prober) string { return p.grace("POST /v1/take HTTP/1.1\r\nHos", "") }},
	{"a stop with a body that does not come", "exit 1 after 3.0 s, 3 in the file", func(p *prober) string {
		return p.grace("POST /v1/take HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{", "")
	}},
	{"a body that is completed within the grace", "exit 0 after 0.6 s, 3 in the file, answered with 200, 2 in the file", func(p *prober) string { return p.grace(halves(60)) }},
	{"a header that is completed within the grace", "exit 0 after 0.5 s, 3 in the file, no answer, 0 in the file", func(p *prober) string { return p.grace(halves(30)) }},
	{"64 clients ask without pause while it stops", "exit 0 after 0.3 s; without an answer: 64 over kept connections, 0 over new ones; counted: as many as were answered", func(p *prober) string { return p.busyStop("0s") }},
	{"the same with --drain 1s", "exit 0 after 1.2 s; without an answer: 0 over kept connections, 31 over new ones; counted: as many as were answered", func(p *prober) string { return p.busyStop("1s") }},
	{"SIGHUP", "ends with signal: hangup, 0 in the file", (*prober).hangUp},
	{"a request with the Host evil.example", "200, 1 decisions", (*prober).rebound},
}

// halves returns a request in two pieces.
func halves(at int) (string, string) {
	text := style{}.request("127.0.0.1", takePath, bodyOf(request{"slow", "half", 2}))
	if at > 50 {
		at = len(text) - 5
	}
	return text[:at], text[at:]
}

// grace stops a daemon after the first piece of a request. The rest follows half a second later.
func (p *prober) grace(first, rest string) string {
	file := p.file()
	d := p.daemon("--state", file, "--grace", "3s", "--rule", slowRule)
	conn, err := net.Dial("tcp", d.address)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, first)
	time.Sleep(100 * time.Millisecond)
	ask(d, style{}, request{"slow", "q", 3})
	got := make(chan string, 1)
	go func() {
		time.Sleep(500 * time.Millisecond)
		_, _ = io.WriteString(conn, rest)
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		buffer := make([]byte, 12)
		if n, err := io.ReadFull(conn, buffer); err != nil {
			got <- "no answer"
		} else {
			got <- "answered with " + string(buffer[n-3:])
		}
	}()
	shown := stop(d) + ", " + used(file, slowRule, "q")
	if rest != "" {
		shown += ", " + <-got + ", " + used(file, slowRule, "half")
	}
	return shown
}

// busyStop stops a daemon while clients use open connections.
func (p *prober) busyStop(drain string) string {
	file, rule := p.file(), ledgerRules(onMemory)[1]
	d := p.daemon("--state", file, "--drain", drain, "--rule", rule)
	var yes, lost, others atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			var c client
			defer c.close()
			for {
				switch r := c.ask(d.address, takePath, bodyOf(request{creditName, "k", 1}), style{}); {
				case r.outcome == notSent:
					return
				case r.outcome == unanswered && !r.fresh:
					lost.Add(1)
				case r.outcome == unanswered:
					others.Add(1)
				default:
					yes.Add(1)
				}
			}
		})
	}
	time.Sleep(1200 * time.Millisecond)
	shown := stop(d)
	all.Wait()
	counted := strings.TrimSuffix(used(file, rule, "k"), " in the file")
	verdict := "as many as were answered"
	if counted != fmt.Sprint(yes.Load()) {
		verdict = fmt.Sprintf("%s, and %d were answered", counted, yes.Load())
	}
	return fmt.Sprintf("%s; without an answer: %d over kept connections, %d over new ones; counted: %s", shown, lost.Load(), others.Load(), verdict)
}

func (p *prober) hangUp() string {
	file := p.file()
	d := p.daemon("--state", file, "--state-every", "0", "--rule", slowRule)
	ask(d, style{}, request{"slow", "q", 3})
	d.signal(syscall.SIGHUP)
	select {
	case <-d.ended:
		return fmt.Sprintf("ends with %v, %s", d.cmd.ProcessState, used(file, slowRule, "q"))
	case <-time.After(time.Second):
	}
	shown := "runs on, " + used(file, slowRule, "q")
	d.kill()
	return shown
}

func (p *prober) rebound() string {
	d := p.daemon()
	defer d.kill()
	conn, err := net.Dial("tcp", d.address)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, style{}.request("evil.example", takePath, bodyOf(request{"default", "r", 1})))
	buffer := make([]byte, 12)
	if _, err := io.ReadFull(conn, buffer); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s, %d decisions", buffer[9:], decisions(d))
}
