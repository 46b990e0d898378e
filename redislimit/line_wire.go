package redislimit

import (
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/weirflow/weir"
)

// What became of a caller in line: see script/line.lua.
const (
	outcomeTurn   = iota // the decision decides
	outcomeDry           // a rate refuses
	outcomeStands        // slots refuse, or older callers want them
	outcomeHolds         // an earlier question took its slots
)

// lineHeader is what an ask says before its callers.
type lineHeader struct {
	process string
	hears   hearing
	grace   time.Duration
	callers int
	keys    []lineKey
}

// hearing is how a process hears signals.
type hearing uint8

const (
	deaf hearing = iota
	byPublish
	byShard // SPUBLISH
)

// lineKey is one line of an ask: what the process says of it, and the answer.
type lineKey struct {
	key        string
	slots      decision // a PEEK of them
	token      uint64
	since      time.Time
	cost, want int64
	keep       lineKeep

	news weir.LineNews
	full bool
}

// lineKeep is a caller that stays.
type lineKeep struct {
	lease uint64
	since time.Time
	units int64
}

// lineCaller is a caller in line, and the answer.
type lineCaller struct {
	header *lineHeader // with the first caller of an ask
	last   *lineHeader // with the last one
	nobody bool        // the ask has no callers
	since  time.Time
	again  bool // it may hold its slots already
	stays  bool
	lease  uint64
	rates  []lineRate
	slots  []lineSlots

	outcome  byte
	wait     float64 // us; of one whose turn it is: how many others wait for its rates
	refusing uint32  // a bit for each of slots
}

// lineRate is the line of a rate, its first part in the decision, and how long the caller's cost takes there.
type lineRate struct {
	key  string
	at   int
	unit time.Duration
}

// lineSlots are the slots of one line that a caller takes.
type lineSlots struct {
	at   int // the line in the ask
	cost int64
	part int
}

// lineBooking is a caller that books, and the answer.
type lineBooking struct {
	process   string
	key       string
	since     time.Time
	unit, way time.Duration

	retry float64 // us; 0 if it was booked
}

// line returns the key of the line of a part's callers, which differs from that of its state in the name of the limit.
func (p *part) line() string {
	at := strings.IndexByte(p.key, '}') + len("}:")
	return p.key[:at] + p.limit.line + p.key[at+len(p.limit.state):]
}

// freed returns the slots that a decision may free, as decisions that peek.
func (d *decision) freed() (slots []decision) {
	for i := range d.parts {
		p := &d.parts[i]
		if d.unsignalled || p.limit.kind != kindSlots || len(slots) == math.MaxUint8 {
			continue
		}
		if d.op == opReset || d.op == opUndo || d.op == opRecord && p.cost < 0 {
			peek := *p
			peek.cost = 0
			slots = append(slots, decision{op: opPeek, parts: []part{peek}})
		}
	}
	return slots
}

// line appends what comes before a decision that concerns lines. It reports whether this one does.
func (b *batch) line(d *decision) bool {
	switch {
	case d.booking != nil:
		b.books(d.booking)
		return true
	case d.line != nil:
		b.calls(d.line)
		return true
	case d.op != opReset && d.op != opUndo && d.op != opRecord:
		return false
	}
	freed := d.freed()
	if len(freed) == 0 {
		return false
	}
	b.lines("frees", len(freed))
	for i := range freed {
		b.index16(freed[i].parts[0].line())
		b.group(&freed[i], 0)
	}
	return true
}

func (b *batch) lines(what string, count int) {
	b.occurs(withLines)
	b.word(what, count)
}

func (b *batch) index16(key string) {
	b.args = binary.LittleEndian.AppendUint16(b.args, uint16(b.number(key)))
}

func (b *batch) calls(q *lineCaller) {
	if h := q.header; h != nil {
		b.lines("asks", len(h.keys))
		b.args = append(append(b.args, h.process...), byte(h.hears))
		b.args = doubles(b.args, micros(h.grace), float64(max(h.callers, 1)))
		for i := range h.keys {
			k := &h.keys[i]
			b.index16(k.key)
			b.args = binary.LittleEndian.AppendUint64(b.args, k.token)
			b.args = doubles(b.args, age(k.since), float64(k.cost), float64(k.want))
			b.args = binary.LittleEndian.AppendUint64(b.args, k.keep.lease)
			b.args = doubles(b.args, age(k.keep.since), float64(k.keep.units))
			b.group(&k.slots, 0)
		}
	}
	if q.nobody {
		return
	}
	b.lines("calls", len(q.slots))
	b.args = doubles(binary.LittleEndian.AppendUint64(b.args, q.lease), age(q.since))
	flags := byte(0)
	if q.again {
		flags = 1
	}
	if q.stays {
		flags += 2
	}
	b.args = append(b.args, flags, byte(len(q.rates)))
	for _, r := range q.rates {
		b.index16(r.key)
		b.args = doubles(append(b.args, byte(r.at+1)), micros(r.unit))
	}
	for _, s := range q.slots {
		b.args = doubles(append(b.args, byte(s.at+1)), float64(s.cost))
	}
}

func (b *batch) books(q *lineBooking) {
	b.lines("books", 0)
	b.args = append(b.args, q.process...)
	b.index16(q.key)
	b.args = doubles(b.args, age(q.since), micros(q.unit), micros(q.way))
}

func micros(d time.Duration) float64 { return math.Ceil(float64(d) / float64(time.Microsecond)) }

// age returns the time since an instant in us; 0 for none.
func age(since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(micros(time.Since(since)), 0)
}

// turn reads what the answer to a caller begins with. It reports whether the decision only peeked.
func (r *reply) turn(q *lineCaller) (peeked bool) {
	if q.nobody {
		return true
	}
	q.outcome, q.wait, q.refusing = r.byte(), r.double(), r.uint32()
	return q.outcome != outcomeTurn
}

// news reads what the answer to the last caller of an ask ends with.
func (r *reply) news(h *lineHeader) {
	for i := range h.keys {
		n := &h.keys[i].news
		n.Units, n.MinAge, n.Look = units(r.double()), wait(r.double()), wait(r.double())
		flags := r.byte()
		n.Passed, h.keys[i].full = flags&1 > 0, flags&2 > 0
	}
}
