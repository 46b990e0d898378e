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

var requestAttacks = []attack{
	{"vanish", "clients that ask and go away before the answer", (*attacker).vanish},
	{"stall", "bodies that stall", (*attacker).stall},
	{"pipeline", "hundreds of requests in one write, and their answers in order", (*attacker).pipeline},
}

// vanish sends complete requests and closes without reading an answer.
func (a *attacker) vanish() {
	for !a.done() {
		body := bodyOf(request{"prey", "vanished", 1})
		conns := a.open(a.between(10, 200), func(int) string {
			how := style{chunked: a.random.IntN(2) == 0, large: a.random.IntN(4) == 0}
			return how.request("127.0.0.1", takePath, body)
		})
		a.leave(conns)
		a.did("requests", len(conns))
		a.wait(time.Duration(a.between(10, 500)) * time.Millisecond)
	}
}

// bodyPatience is how long the daemon waits for a body.
const bodyPatience = 15 * time.Second

// stall sends a part of a body and no more. The daemon must say 408 and count nothing.
func (a *attacker) stall() {
	d, key := a.current.Load(), fmt.Sprintf("stalled %d", a.random.Uint64())
	body := bodyOf(request{"pipe", key, 1})
	var sent []string
	conns := a.open(a.between(10, 100), func(int) string {
		how := style{chunked: a.random.IntN(2) == 0, large: a.random.IntN(2) == 0}
		text := how.request("127.0.0.1", takePath, body)
		head := strings.Index(text, "\r\n\r\n") + 4
		sent = append(sent, text[:head+a.random.IntN(len(text)-head)])
		return sent[len(sent)-1]
	})
	defer a.leave(conns)
	a.did("requests", len(conns))
	if a.duration < time.Minute {
		a.wait(bodyPatience)
		return
	}
	for i, conn := range conns { // even after the turn
		_ = conn.SetReadDeadline(time.Now().Add(bodyPatience + slack))
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if d.stopping.Load() {
			return
		}
		switch {
		case err != nil:
			a.Break(promiseAnswered, "a body that stalls: %v", err)
		case response.StatusCode != http.StatusRequestTimeout && response.StatusCode != http.StatusServiceUnavailable:
			said, _ := io.ReadAll(response.Body)
			a.Break(promiseRefused, "a request that stalls after %q was answered with %d: %s", sent[i], response.StatusCode, said)
		}
		a.did("answers", 1)
	}
	a.countedWithin("pipe", key, 0, 0)
}

// pipeline sends many requests in one write. The daemon must answer each in order and count it once.
func (a *attacker) pipeline() {
	key := fmt.Sprintf("pipeline %d", a.random.Uint64())
	begun, answers := int64(0), int64(0)
	for !a.done() && begun == answers {
		d, conn := a.current.Load(), a.dial()
		if conn == nil {
			continue
		}
		n := a.between(10, 400)
		got, err := a.pipelined(conn, key, n)
		_ = conn.Close()
		begun, answers = begun+int64(n), answers+int64(got)
		if err != nil && !d.stopping.Load() && a.world.crowd.Load() == 0 {
			a.Break(promiseAnswered, "%d of %d pipelined requests were answered: %v", got, n, err)
		}
		a.did("requests", n)
		a.wait(time.Duration(a.between(5, 50)) * time.Millisecond)
	}
	a.countedWithin("pipe", key, answers, begun)
}

// pipelined returns the number of requests with the expected answer.
func (a *attacker) pipelined(conn net.Conn, key string, n int) (int, error) {
	text := strings.Repeat(style{}.request("127.0.0.1", takePath, bodyOf(request{"pipe", key, 1})), n)
	go func() { _, _ = io.WriteString(conn, text) }()
	reader, last := bufio.NewReader(conn), int64(0)
	for i := range n {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return i, err
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return i, err
		}
		got, err := readAnswer(body)
		if err != nil || response.StatusCode != http.StatusOK {
			return i, fmt.Errorf("status %d: %.200s", response.StatusCode, body)
		}
		if i > 0 && got.Remaining != last-1 {
			return i, fmt.Errorf("an answer with %d remaining after one with %d", got.Remaining, last)
		}
		last = got.Remaining
	}
	return n, nil
}

// countedWithin checks how much the daemon has counted for an attacker's key.
func (a *attacker) countedWithin(rule, key string, least, most int64) {
	k := &worker{world: a.world, random: a.random}
	defer k.http.close()
	defer k.idle.close()
	e, known := k.ask(peekPath, request{rule, key, 0})
	if used := e.answer.Limit - e.answer.Remaining; known && (used < least || used > most) {
		a.Break(promiseCounted, "%s: %d units of key %q are counted, and %d to %d were asked for", a.name, used, key, least, most)
	}
}
