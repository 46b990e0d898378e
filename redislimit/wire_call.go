package redislimit

import (
	"encoding/binary"
	"strconv"
)

// batch is one call of the script: the distinct keys and the decisions.
type batch struct {
	keys    []string
	index   map[string]int
	args    []byte
	spent   []byte // of each decision, if DenyNewServer is set
	long    []byte // the numbers of the keys of long logs
	watch   bool   // earlier has the keys of earlier versions
	earlier []byte
	last    *decision // the previous one, if it can be repeated
	asked   op        // its operation when it was added
	run     run       // the repeats of it
	space   [6]int64  // for the numbers of a state of the reply
}

// run describes repeats of a decision at the end of a batch.
type run struct {
	first, count, step int // the number of their first key, how many they are, and by how much the next key's number is greater
	at, end            int // where args has the count, and the end of args when they were added
}

// add appends a decision.
func (b *batch) add(d *decision) {
	if len(b.args) == 0 {
		b.args = append(b.args, 0, 0) // the kinds that occur
	}
	if b.line(d) { // the script reads the slots of lines in between
		b.last = nil
	} else if b.again(d) {
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
		b.args = doubles(b.args, float64(d.due), d.beyond())
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
	if b.watch && len(b.earlier) > 0 {
		b.args = append(b.args, b.earlier...)
		b.args = binary.LittleEndian.AppendUint32(b.args, uint32(len(b.earlier)))
	}
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
	b.repeat(b.key(p))
	if p.limit.kind == kindSlots {
		b.args = binary.LittleEndian.AppendUint64(b.args, p.lease)
	}
	b.run.end = len(b.args)
	return true
}

// repeat appends a repeat for a key. Repeats whose keys have the same or successive numbers are one run.
func (b *batch) repeat(key int) {
	r := &b.run
	if r.end == len(b.args) && r.count == 1 && (key == r.first || key == r.first+1) {
		r.step = key - r.first
	}
	if r.end != len(b.args) || key != r.first+r.count*r.step {
		*r = run{first: key, at: len(b.args) + 3}
		b.args = append(b.args, byte(opAgain))
		b.args = binary.LittleEndian.AppendUint16(b.args, uint16(key))
		b.args = append(b.args, 0, 0, 0)
	}
	r.count++
	binary.LittleEndian.PutUint16(b.args[r.at:], uint16(r.count))
	b.args[r.at+2] = byte(r.step)
}

// key returns the number of the part's key in KEYS.
func (b *batch) key(p *part) int {
	known := len(b.keys)
	number := b.number(p.key)
	if number > known && b.watch {
		b.watched(p, number)
	}
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
