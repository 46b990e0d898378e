package redislimit

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// This file implements the protocol of the script, which the script's opening comment defines.

// op numbers the operations of the script.
type op uint8

const (
	opPeek op = iota
	opTake
	opRecord
	opReset
	opUndo
	opAgain // repeats the previous decision for another key
	opUpTo  // takes as often as it fits; once answered, it is a take
	opRenew // renews the lease of slots
)

var opNames = [...]string{opPeek: "peek", opTake: "take", opRecord: "record", opReset: "reset", opUndo: "undo", opUpTo: "take", opRenew: "renew"}

func (o op) String() string { return opNames[o] }

// flags of a decision in the reply.
const (
	flagRefused = iota
	flagAdmitted
	flagUnreadable
)

var (
	errReply      = errors.New("the script's reply does not match the call")
	errUnreadable = uncounted(Damaged, errors.New("the stored state is damaged, or not Weir's"))
)

// misread returns the error of an answer whose flag alone could be read. The script writes an admitted take, every
// record, and an attempt that a log counts though it refuses it.
func (d *decision) misread(short bool) error {
	counted := weir.CountedNo
	switch {
	case short:
		counted = weir.CountedUnknown
	case d.op == opRecord, d.op == opTake && d.admitted, d.op == opTake && d.parts[0].limit.denied:
		counted = weir.CountedYes
	}
	return &Error{Reason: Damaged, Counted: counted, Err: errReply}
}

// batch is one call of the script: the distinct keys and the decisions.
type batch struct {
	keys  []string
	index map[string]int
	args  []byte
	spent []byte // of each key, if DenyNewServer is set
	last  *part  // of the previous decision, if it can be repeated
	asked op     // the operation of that decision
}

// add appends a decision.
func (b *batch) add(d *decision) {
	if len(b.args) == 0 {
		b.args = append(b.args, 0) // the kinds that occur
	}
	if b.again(d) {
		return
	}
	if len(d.parts) > 1 {
		b.args[0] |= 1
	}
	if d.op == opUpTo {
		b.args[0] |= 1 << scriptUpToBit
	}
	b.args = append(b.args, byte(d.op))
	b.args = binary.LittleEndian.AppendUint16(b.args, uint16(len(d.parts)))
	switch d.op {
	case opUndo:
		b.args = doubles(b.args, float64(d.now))
	case opUpTo:
		b.args = doubles(b.args, float64(d.times))
	}
	for i := range d.parts {
		p := &d.parts[i]
		b.args[0] |= 1 << p.limit.kind
		b.args = append(b.args, byte(p.limit.kind))
		b.args = binary.LittleEndian.AppendUint16(b.args, uint16(b.key(p)))
		if d.op != opReset {
			b.args = p.append(b.args, d.op)
		}
	}
}

// again appends a decision that differs from the previous one only in its key, if d is one.
func (b *batch) again(d *decision) bool {
	before := b.last
	if b.last = nil; len(d.parts) != 1 || d.op > opRecord {
		return false
	}
	p := &d.parts[0]
	b.last = p
	if before == nil || b.asked != d.op || before.limit != p.limit || before.cost != p.cost {
		b.asked = d.op
		return false
	}
	b.args = append(b.args, byte(opAgain))
	b.args = binary.LittleEndian.AppendUint16(b.args, uint16(b.key(p)))
	if p.limit.kind == kindSlots {
		b.args = binary.LittleEndian.AppendUint64(b.args, p.lease)
	}
	return true
}

// key returns the number of the part's key in KEYS, from 1.
func (b *batch) key(p *part) int {
	key := p.key
	if number, ok := b.index[key]; ok {
		return number
	}
	b.keys = append(b.keys, key)
	b.spent = doubles(b.spent, p.limit.spent())
	if b.index == nil {
		b.index = make(map[string]int)
	}
	b.index[key] = len(b.keys)
	return len(b.keys)
}

// append writes the parameters of the part's kind.
func (p *part) append(to []byte, o op) []byte {
	l := p.limit
	switch l.kind {
	case kindBucket:
		return p.appendBucket(to, o)
	case kindWindow:
		return doubles(to, p.units(), float64(l.capacity), float64(l.period), flag(l.weighs))
	case kindCycle:
		return doubles(to, p.units(), float64(l.capacity), float64(l.period), float64(l.origin))
	case kindLog:
		return doubles(to, p.units(), float64(l.capacity), float64(l.period), float64(l.gap), flag(l.denied), flag(l.gate))
	}
	to = doubles(to, p.units(), float64(l.capacity), float64(l.period))
	return binary.LittleEndian.AppendUint64(to, p.lease)
}

// appendBucket writes the time of the cost. For a cost that can never fit it writes a time above every bound.
func (p *part) appendBucket(to []byte, o op) []byte {
	l := p.limit
	cost, sign := span{whole: math.Inf(1)}, 1.0
	switch {
	case p.cost < 0:
		cost, _ = l.takes(magnitude(p.cost))
		sign = -1
	case p.cost == 0:
		cost, sign = span{}, 0
	case p.cost <= l.capacity || o == opRecord:
		cost, _ = l.takes(p.cost)
	}
	return doubles(to, cost.whole, cost.rest, l.fill.whole, l.fill.rest, float64(l.den), sign)
}

// units returns the cost, cut to the range that matters.
func (p *part) units() float64 { return float64(max(min(p.cost, mostUnits), -mostUnits)) }

func magnitude(n int64) int64 {
	if n < -math.MaxInt64 {
		return math.MaxInt64
	}
	return max(n, -n)
}

func flag(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

func doubles(to []byte, values ...float64) []byte {
	for _, v := range values {
		to = binary.LittleEndian.AppendUint64(to, math.Float64bits(v))
	}
	return to
}

// reply reads the answer of the script. Missing values read as 0 and set short.
type reply struct {
	left  string
	short bool
	since float64 // us; when the server was first seen; -Inf without DenyNewServer
}

func (r *reply) byte() byte {
	if len(r.left) < 1 {
		r.short = true
		return 0
	}
	b := r.left[0]
	r.left = r.left[1:]
	return b
}

func (r *reply) double() float64 {
	if len(r.left) < 8 {
		r.left, r.short = "", true
		return 0
	}
	var word uint64
	for i := range 8 {
		word |= uint64(r.left[i]) << (8 * i)
	}
	r.left = r.left[8:]
	return math.Float64frombits(word)
}

// read reads the answer to a decision made at now.
func (r *reply) read(d *decision, now int64) {
	if d.op != opUndo {
		d.now = now
	}
	if d.op == opUpTo && !d.tookTimes(int64(r.double())) {
		r.short = true
		d.err = d.misread(true)
		return
	}
	flag := r.byte()
	if d.op == opReset {
		return
	}
	if flag == flagUnreadable {
		d.err = errUnreadable
		return
	}
	d.admitted = flag == flagAdmitted
	held := d.op != opUndo && d.op != opRenew && d.held(r.since, now)
	if held {
		d.admitted = false
	}
	wrote := d.op == opRecord || d.op == opTake && d.admitted
	for i := range d.parts {
		p := &d.parts[i]
		m := &p.measure
		*m = enginekit.Measure{Cost: p.cost, Capacity: p.limit.capacity, CountsDenied: p.limit.denied}
		if p.limit.kind.measured() {
			if d.op != opTake || !d.admitted {
				m.Before, m.After = wait(r.double()), wait(r.double())
			}
			m.Remaining, m.ResetAfter = units(r.double()), wait(r.double())
			continue
		}
		r.double() // skips the expiry of the key
		a, b, c := r.double(), r.double(), 0.0
		if p.limit.kind != kindCycle {
			c = r.double()
		}
		state, ok := p.read(a, b, c)
		if !ok {
			d.err = d.misread(false)
			continue
		}
		p.measureState(state, now, wrote)
	}
	if held {
		d.hold(r.since, now)
	}
	if r.short || d.op != opUndo && d.op != opRenew && !d.agrees() {
		d.err = d.misread(r.short)
	}
}

// wait converts a wait in us; an infinite one is Never.
func wait(v float64) time.Duration {
	if v >= math.MaxInt64 {
		return weir.Never
	}
	return duration(int64(v))
}

func units(v float64) int64 { return int64(v) }
