package redislimit

import (
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"
)

// Callers of all processes that wait for slots stand in one line for each Concurrency and key, which Redis keeps in a key
// of its own:
//
//   - A caller asks with a ticket (stand.go). If no earlier ticket is in the line, the script decides the whole request:
//     slots and rates, all or nothing. If it is admitted, the ticket leaves the line. A refused caller stands in line.
//     This is one round trip.
//   - A release signals the first caller of the line (signal.go). So does a ticket that leaves, and a taker that leaves
//     slots to the next. If a rate does not admit that caller yet, the signal names the instant at which it will. A signal
//     is a hint: no caller sleeps for longer than a second without one of its process asking again.
//   - That question keeps all tickets of the process alive. A process that has not asked for three seconds leaves the line
//     with all its tickets (script/line.lua).

// The bounds of a line. A process whose callers have no ticket in a full line may still enter one.
const (
	mostTickets = 1024
	mostParties = 128
	mostLines   = 16 // in which one caller stands
	lineWork    = 8  // the reading of a full line: see work
)

// What a decision does with lines.
const (
	lineFrees = iota
	lineTurn
	lineLeaves
)

// inLine is the turn of a caller in the lines of its slots, or its leaving.
type inLine struct {
	what           int
	keys           []string
	process        string  // 8 bytes
	asks           string  // 8 bytes: a hash of the keys that it asks for
	ticket, oldest float64 // numbers
	hears          hearing

	// The answer to a turn.
	ahead float64 // the tickets that keep it waiting
	known bool    // whether its ticket was in the line
}

// hearing is how a process hears signals.
type hearing uint8

const (
	deaf hearing = iota
	byPublish
	byShard // SPUBLISH
)

// line reads the answer to a turn. It reports whether it was another caller's.
func (r *reply) line(q *inLine) (barred bool) {
	if q.what != lineTurn {
		return false
	}
	q.ahead = r.double()
	q.known = r.byte() == 1
	return q.ahead > 0
}

// bar makes a decision a refusal, because it is another caller's turn.
func (d *decision) bar() {
	for i := range d.parts {
		if p := &d.parts[i]; p.limit.kind == kindSlots && p.cost > 0 {
			m := &p.measure
			m.Before, m.After = max(m.Before, longestSleep), max(m.After, longestSleep)
		}
	}
}

// line returns the key of the line of a part's slots, which differs from theirs in the name of the limit.
func (p *part) line() string {
	at := strings.IndexByte(p.key, '}') + len("}:")
	return p.key[:at] + p.limit.line + p.key[at+len(p.limit.state):]
}

// freed returns the lines of slots that a decision may free.
func (d *decision) freed() (lines []string) {
	for i := range d.parts {
		p := &d.parts[i]
		if d.unsignalled || p.limit.kind != kindSlots || len(lines) == math.MaxUint8 {
			continue
		}
		if d.op == opReset || d.op == opUndo || d.op == opRecord && p.cost < 0 {
			lines = append(lines, p.line())
		}
	}
	return lines
}

// linesOf returns the lines of the slots that parts take, and a text of 8 bytes that is equal for parts of the same keys.
func linesOf(parts []part) (lines []string, asks string) {
	var names []string
	for i := range parts {
		p := &parts[i]
		if p.limit.kind == kindSlots && p.cost > 0 {
			lines = append(lines, p.line())
		}
		names = append(names, p.key+p.limit.identity)
	}
	slices.Sort(lines)
	slices.Sort(names)
	h := fnv.New64a()
	for _, name := range names {
		_, _ = h.Write([]byte(name))
	}
	return slices.Compact(lines), string(h.Sum(nil))
}

// The pauses before a caller asks again.
const (
	longestSleep  = time.Second
	shortestSleep = 10 * time.Millisecond // of a process that hears no signals; doubles with each refusal
)

// pause returns the time until a caller asks again that was refused several times, the last time until after.
func (h hearing) pause(refusals int, after time.Duration) time.Duration {
	longest := longestSleep
	if h == deaf {
		longest = min(shortestSleep<<min(refusals-1, 10), longestSleep)
	}
	return max(min(after, longest), time.Millisecond)
}
