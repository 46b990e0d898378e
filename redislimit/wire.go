package redislimit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
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
	opAgain      // repeats the previous decision for another key
	opUpTo       // takes as often as it fits; once answered, it is a take
	opRenew      // renews the lease of slots
	opIdentified // precedes a decision with an identity
	opWhen       // of the script alone: asks a limit for the instant of a booking
	opBook       // takes for a later instant
	opWithdraw   // gives units of a booking back
)

var opNames = [...]string{opPeek: "peek", opTake: "take", opRecord: "record", opReset: "reset", opUndo: "undo", opUpTo: "take", opRenew: "renew", opBook: "book", opWithdraw: "settle"}

func (o op) String() string { return opNames[o] }

// flags of a decision in the reply.
const (
	flagRefused = iota
	flagAdmitted
	flagUnreadable
)

// replyLater is the end of a reply that does not have all answers.
const replyLater = "\x03"

var (
	errReply = errors.New("the script's reply does not match the call")
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

// unreadable returns the error of a stored value.
func unreadable(keys []string, r *reply) error {
	number := int(r.byte()) | int(r.byte())<<8
	first := r.byte()
	if r.short || number < 1 || number > len(keys) {
		return &Error{Reason: Damaged, Counted: weir.CountedUnknown, Err: errReply}
	}
	key := keys[number-1]
	if version := first >> 4; version != formatVersion {
		return uncounted(Damaged, fmt.Errorf("the value of key %q has version %d of a stored format or is not Weir's, and this program reads version %d: delete the key or use another prefix", key, version, formatVersion))
	}
	return uncounted(Damaged, fmt.Errorf("the value of key %q is damaged: delete the key", key))
}

// batch is one call of the script: the distinct keys and the decisions.
type batch struct {
	keys  []string
	index map[string]int
	args  []byte
	spent []byte    // of each decision, if DenyNewServer is set
	long  []byte    // the numbers of the keys of long logs
	last  *decision // the previous one, if it can be repeated
	asked op        // its operation when it was added
}

// add appends a decision.
func (b *batch) add(d *decision) {
	if len(b.args) == 0 {
		b.args = append(b.args, 0, 0) // the kinds that occur
	}
	b.spent = doubles(b.spent, d.spent())
	if b.again(d) {
		return
	}
	if d.identity == "" {
		b.decision(d)
		return
	}
	b.last = nil
	b.occurs(scriptIdentityBit)
	b.args = append(b.args, byte(opIdentified))
	b.args = binary.LittleEndian.AppendUint16(b.args, uint16(b.number(d.identity)))
	b.args = append(b.args, 0, 0, 0, 0)
	at := len(b.args)
	b.decision(d)
	binary.LittleEndian.PutUint32(b.args[at-4:], uint32(len(b.args)-at))
}

// decision appends a decision without its identity.
func (b *batch) decision(d *decision) {
	groups := d.groups()
	if groups > 1 {
		b.occurs(0)
	}
	if d.op == opUpTo {
		b.occurs(scriptUpToBit)
	}
	b.args = append(b.args, byte(d.op))
	b.args = binary.LittleEndian.AppendUint16(b.args, uint16(groups))
	switch d.op {
	case opUndo:
		b.args = doubles(b.args, float64(d.now), d.age())
	case opUpTo:
		b.args = doubles(b.args, float64(d.times))
	case opBook:
		b.args = doubles(b.args, float64(d.longest))
	case opWithdraw:
		b.args = doubles(b.args, float64(d.due))
	}
	for i := range d.parts {
		if !d.parts[i].joins {
			b.group(d, i)
		}
	}
}

// occurs notes that the script needs the functions of a kind.
func (b *batch) occurs(k kind) { b.args[k/8] |= 1 << (k % 8) }

// end appends what follows the decisions.
func (b *batch) end() {
	if len(b.long) > 0 {
		b.args = append(b.args, b.long...)
		b.args = binary.LittleEndian.AppendUint16(b.args, uint16(len(b.long)/2))
	}
}

// group appends the part i with the parts that share its value.
func (b *batch) group(d *decision, i int) {
	p := &d.parts[i]
	shared := d.shared(i)
	kind := p.limit.kind
	if shared > 1 {
		kind = kindCell
	}
	b.occurs(kind)
	b.args = append(b.args, byte(kind))
	b.args = binary.LittleEndian.AppendUint16(b.args, uint16(b.key(p)))
	if d.op == opReset {
		return
	}
	if shared > 1 {
		b.layout(d, i, shared)
	}
	if p.limit.kind.fixed() {
		b.head(d, i, shared)
	}
	if shared == 1 {
		b.args = p.append(b.args, d.op)
		return
	}
	for ; shared > 0; i++ {
		if p := &d.parts[i]; p.limit.kind.fixed() {
			b.occurs(p.limit.kind)
			b.args = append(b.args, byte(p.limit.kind), 0) // without a head of its own
			b.args = p.append(b.args, d.op)
			shared--
		}
	}
}

// layout appends the number of states in a value, of which the first is that of part i, and the length and the formats
// of the value.
func (b *batch) layout(d *decision, i, n int) {
	length, names, numbers := 8, 2, ""
	for left := n; left > 0; i++ {
		l := d.parts[i].limit
		switch {
		case !l.kind.fixed():
			continue
		case l.kind == kindBucket:
			length, numbers = length+32, numbers+"dI4I4dd"
		default:
			length, numbers = length+24, numbers+"ddd"
		}
		names += len(l.identity)
		left--
	}
	b.args = append(b.args, byte(n))
	b.args = binary.LittleEndian.AppendUint16(b.args, uint16(length+names))
	for _, format := range []string{"<c" + strconv.Itoa(names) + "d" + numbers, "<c0d" + numbers} {
		b.args = append(b.args, byte(len(format)))
		b.args = append(b.args, format...)
	}
}

// head appends the head of a value of n states, of which the first is that of part i.
func (b *batch) head(d *decision, i, n int) {
	at := len(b.args)
	b.args = append(b.args, 0, formatByte, byte(n))
	for ; n > 0; i++ {
		if l := d.parts[i].limit; l.kind.fixed() {
			b.args = append(b.args, l.identity...)
			n--
		}
	}
	b.args[at] = byte(len(b.args) - at - 1)
}

// again appends a decision that differs from the previous one only in its key, if d is one.
func (b *batch) again(d *decision) bool {
	before := b.last
	if b.last = nil; d.groups() != 1 || d.op > opRecord || d.identity != "" {
		return false
	}
	b.last = d
	if before == nil || b.asked != d.op || !d.repeats(before) {
		b.asked = d.op
		return false
	}
	p := &d.parts[0]
	b.args = append(b.args, byte(opAgain))
	b.args = binary.LittleEndian.AppendUint16(b.args, uint16(b.key(p)))
	if p.limit.kind == kindSlots {
		b.args = binary.LittleEndian.AppendUint64(b.args, p.lease)
	}
	return true
}

// key returns the number of the part's key in KEYS.
func (b *batch) key(p *part) int {
	known := len(b.keys)
	number := b.number(p.key)
	if l := p.limit; number > known && l.kind == kindLog && l.weight >= heavyWork {
		b.occurs(longKeysBit)
		b.long = binary.LittleEndian.AppendUint16(b.long, uint16(number))
	}
	return number
}

// number returns the number of a key in KEYS, from 1.
func (b *batch) number(key string) int {
	if number, ok := b.index[key]; ok {
		return number
	}
	b.keys = append(b.keys, key)
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
	case kindBucket, kindLeaky:
		return p.appendBucket(to, o)
	case kindWindow:
		return doubles(to, p.units(), float64(l.capacity), float64(l.period), flag(l.weighs))
	case kindCycle:
		to = doubles(to, p.units(), float64(l.capacity), float64(l.period), float64(l.origin))
		if o == opWithdraw {
			to = doubles(to, p.bookedTo[0], p.bookedTo[1], p.restored[0], p.restored[1])
		}
		return to
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
	if o == opUndo && l.kind == kindLeaky {
		sign = 2
	}
	to = doubles(to, cost.whole, cost.rest, l.fill.whole, l.fill.rest, float64(l.den), float64(l.unit), sign)
	if l.kind == kindLeaky {
		to = doubles(to, l.early.whole, l.early.rest)
	}
	if sign == 2 {
		to = doubles(to, p.left.whole, p.left.rest, p.told)
	}
	if o == opWithdraw {
		to = doubles(doubles(to, p.bookedTo[:]...), p.restored[:]...)
	}
	return to
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
func (r *reply) read(d *decision, now int64, keys []string) {
	if d.identity != "" {
		first := r.double()
		if math.IsInf(first, 1) {
			d.undone()
			return
		}
		now = int64(first)
	}
	if d.op != opUndo {
		d.now = now
	}
	if d.op == opUpTo && !d.tookTimes(int64(r.double())) {
		r.short = true
		d.err = d.misread(true)
		return
	}
	if d.op == opBook {
		d.due, d.space = int64(r.double()), r.double()
	}
	flag := r.byte()
	if d.op == opReset {
		return
	}
	if flag == flagUnreadable {
		d.err = unreadable(keys, r)
		return
	}
	d.admitted = flag == flagAdmitted
	held := d.op != opUndo && d.op != opRenew && d.op != opWithdraw && d.held(r.since, now)
	if held {
		d.admitted = false
	}
	wrote := d.op == opRecord || d.op == opTake && d.admitted
	for i := range d.parts {
		if !d.parts[i].joins {
			r.group(d, i)
			wrote = wrote && !d.parts[i].measure.Full
		}
	}
	if r.short {
		d.err = d.misread(true)
		return
	}
	if d.op == opBook {
		d.measureBooking(now, held)
	} else {
		for i := range d.parts {
			d.parts[i].measured(d, now, wrote)
		}
	}
	if held {
		d.hold(r.since, now)
	}
	if d.op != opUndo && d.op != opRenew && d.op < opBook && !d.agrees() {
		d.err = d.misread(false)
	}
}

// group reads the answer to part i and to the parts that share its value.
func (r *reply) group(d *decision, i int) {
	p := &d.parts[i]
	if p.limit.kind.measured() {
		m := &p.measure
		*m = enginekit.Measure{}
		if d.op != opTake || !d.admitted {
			m.Before, m.After = wait(r.double()), wait(r.double())
		}
		room := r.double()
		m.Full = room < 0
		m.Remaining, m.ResetAfter = units(max(room, 0)), wait(r.double())
		return
	}
	shared := d.shared(i)
	exists := r.byte() == formatByte
	if exists {
		r.byte() // the number of states
	}
	for j, n := i, shared; n > 0 && exists; j++ {
		if l := d.parts[j].limit; l.kind.fixed() {
			r.skip(len(l.identity))
			n--
		}
	}
	if exists {
		r.double() // the expiry of the key
	}
	for ; shared > 0; i++ {
		if p := &d.parts[i]; p.limit.kind.fixed() {
			p.stored = [6]float64{math.Inf(-1), 0, 1, 1, math.Inf(-1), math.Inf(-1)}
			if exists {
				r.state(p)
			}
			shared--
		}
	}
}

// state reads the numbers of a state.
func (r *reply) state(p *part) {
	s := &p.stored
	if p.limit.kind > kindLeaky {
		s[0], s[1], s[2] = r.double(), r.double(), r.double()
		return
	}
	s[0] = r.double()
	s[1], s[2] = float64(r.uint32()), float64(r.uint32())
	s[3], s[4], s[5] = r.double(), r.double(), math.Inf(-1)
	if p.limit.kind == kindLeaky {
		s[5] = r.double()
	}
}

func (r *reply) uint32() uint32 {
	if len(r.left) < 4 {
		r.left, r.short = "", true
		return 0
	}
	word := uint32(r.left[0]) | uint32(r.left[1])<<8 | uint32(r.left[2])<<16 | uint32(r.left[3])<<24
	r.left = r.left[4:]
	return word
}

func (r *reply) skip(n int) {
	if len(r.left) < n {
		r.left, r.short = "", true
		return
	}
	r.left = r.left[n:]
}

// wait converts a wait in us; an infinite one is Never.
func wait(v float64) time.Duration {
	if v >= math.MaxInt64 {
		return weir.Never
	}
	return duration(int64(v))
}

func units(v float64) int64 { return int64(v) }
