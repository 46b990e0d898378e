package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// tableFaults concern bounds on connections and keys.
var tableFaults = []knownFault{
	{"5000 connections, 64 silent ones beyond the bound: the answers", "4096 200, 64 503, 840 closed; one more: 200; with silent spares: 200, 5 s later: 200; after all left: 200", (*prober).crowded},
	{"20,000 keys take a slot where 1000 are kept, without a lease in the rule and with 2 s: keys admitted; 62 s later of 500 new ones; after a restart", "c: 1768 of 20000; cl: 1768 of 20000; c: 0 of 500; cl: 500 of 500; c: 0 of 500", (*prober).pinned},
}

func (p *prober) crowded() string {
	d := p.daemon()
	defer d.kill()
	var conns []net.Conn
	defer func() { closeAll(conns) }()
	for range 5000 {
		conn, err := net.DialTimeout("tcp", d.address, 2*time.Second)
		if err != nil {
			break
		}
		conns = append(conns, conn)
	}
	time.Sleep(300 * time.Millisecond)
	kinds := map[string]int64{}
	for _, conn := range conns {
		kinds[first(conn, "/readyz")]++
	}
	over := oneMore(d, "/healthz")
	for range spares {
		if conn, err := net.DialTimeout("tcp", d.address, 2*time.Second); err == nil {
			conns = append(conns, conn)
		}
	}
	time.Sleep(200 * time.Millisecond)
	full := oneMore(d, "/healthz")
	time.Sleep(5200 * time.Millisecond)
	later := oneMore(d, "/healthz")
	closeAll(conns)
	time.Sleep(500 * time.Millisecond)
	return fmt.Sprintf("%s; one more: %s; with silent spares: %s, 5 s later: %s; after all left: %s", counts(kinds), over, full, later, oneMore(d, "/readyz"))
}

// spares is the number of connections beyond the bound that the daemon refuses with an answer.
const spares = 64

// first sends a request and returns the status.
func first(conn net.Conn, path string) string {
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := io.WriteString(conn, style{}.request("127.0.0.1", path, "")); err != nil {
		return "closed"
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "closed"
	}
	return fmt.Sprint(response.StatusCode)
}

func oneMore(d *daemon, path string) string {
	conn, err := net.DialTimeout("tcp", d.address, 3*time.Second)
	if err != nil {
		return "refused"
	}
	defer func() { _ = conn.Close() }()
	return first(conn, path)
}

func (p *prober) pinned() string {
	file := p.file()
	flags := []string{"--max-keys", "1000", "--state", file, "--rule", "c=concurrency 3", "--rule", "cl=concurrency 3 lease 2s"}
	d := p.daemon(flags...)
	var shown []string
	for _, rule := range []string{"c", "cl"} {
		shown = append(shown, slotsOf(d, rule, "f", 20_000))
	}
	time.Sleep(62 * time.Second) // longer than the daemon's default lease
	for _, rule := range []string{"c", "cl"} {
		shown = append(shown, slotsOf(d, rule, "h", 500))
	}
	stop(d)
	d = p.daemon(flags...)
	defer d.kill()
	shown = append(shown, slotsOf(d, "c", "i", 500))
	return strings.Join(shown, "; ")
}

// slotsOf takes a slot for each of n keys and returns the number admitted.
func slotsOf(d *daemon, rule, prefix string, n int) string {
	conn, err := net.Dial("tcp", d.address)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close() }()
	reader, yes, problems := bufio.NewReader(conn), 0, map[string]int{}
	for i := 0; i < n; i += perWrite {
		var text strings.Builder
		for j := range perWrite {
			text.WriteString(style{}.request("127.0.0.1", takePath, bodyOf(request{rule, fmt.Sprint(prefix, i+j), 1})))
		}
		_, _ = io.WriteString(conn, text.String())
		for range perWrite {
			response, err := http.ReadResponse(reader, nil)
			if err != nil {
				return err.Error()
			}
			body, _ := io.ReadAll(response.Body)
			if response.StatusCode != http.StatusOK {
				problems[fmt.Sprint(response.StatusCode)]++
			} else if strings.Contains(string(body), `"allowed":true`) {
				yes++
			}
		}
	}
	if len(problems) > 0 {
		return fmt.Sprintf("%s: %d of %d, others %v", rule, yes, n, problems)
	}
	return fmt.Sprintf("%s: %d of %d", rule, yes, n)
}
