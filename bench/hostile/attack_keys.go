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

var keyAttacks = []attack{
	{"keys", "a flood of keys never seen, beyond the cap", (*attacker).keys},
	{"slots", "a flood of keys that take slots and keep them", (*attacker).slots},
}

// keys floods the table of one rule.
func (a *attacker) keys() { a.flood("prey", "flood") }

// slots floods a table of slots, with or without leases in the rule.
func (a *attacker) slots() {
	a.flood([]string{"held", "leased"}[a.random.IntN(2)], "slot")
}

// perWrite is the number of requests in one write of a flood.
const perWrite = 100

// flood sends requests on new keys over one connection, several in a write.
func (a *attacker) flood(rule, prefix string) {
	for !a.done() {
		conn := a.dial()
		if conn == nil {
			continue
		}
		reader := bufio.NewReader(conn)
		for !a.done() {
			if !a.floodOnce(conn, reader, rule, prefix) {
				break
			}
			a.wait(time.Duration(a.between(5, 40)) * time.Millisecond)
		}
		_ = conn.Close()
		a.wait(10 * time.Millisecond)
	}
}

func (a *attacker) floodOnce(conn net.Conn, reader *bufio.Reader, rule, prefix string) bool {
	var text strings.Builder
	for range perWrite {
		key := fmt.Sprintf("%s %d", prefix, a.random.Uint64())
		text.WriteString(style{}.request("127.0.0.1", takePath, bodyOf(request{rule, key, 1})))
	}
	if _, err := io.WriteString(conn, text.String()); err != nil {
		return false
	}
	for range perWrite {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return false
		}
		if response.StatusCode >= 500 && response.StatusCode != http.StatusServiceUnavailable {
			a.Break(promiseRefused, "a flood of keys of the rule %s was answered with %d", rule, response.StatusCode)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return false
		}
		if response.Close {
			return false
		}
	}
	a.did("keys", perWrite)
	return true
}
