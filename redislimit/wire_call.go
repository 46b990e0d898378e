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

// What a batch begins with: whether the script needs the functions of these, a byte each.
const (
	withBuckets = iota
	withWindows
	withCycles
	withLogs
	withSlots
	withUpTo
	withIdentities
	withLines
	withs
)

// add appends a decision.
func (b *batch) add(d *decision) {
	if len(b.args) == 0 {
		b.args = append(b.args, make([]byte, withs)...)
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
	b.occurs(withIdentities)
	b.word("identified", b.number(d.identity))
	b.args = append(b.args, 0, 0, 0, 0)
	at := len(b.args)
	b.decision(d)
	binary.LittleEndian.PutUint32(b.args[at-4:], uint32(len(b.args)-at))
}

// word appends a word and a number.
func (b *batch) word(text string, number int) {
	b.args = append(append(b.args, byte(len(text))), text...)
	b.args = binary.LittleEndian.AppendUint16(b.args, uint16(number))
}

// decision appends a decision without its identity.
func (b *batch) decision(d *decision) {
	b.word(opWords[d.op], d.groups())
	switch d.op {
	case opUndo:
		b.args = doubles(b.args, float64(d.now), d.age())
	case opUpTo:
		b.occurs(withUpTo)
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

// occurs notes that the script needs some functions.
func (b *batch) occurs(with int) { b.args[with] = 1 }

// group appends the part i with the parts that share its value.
func (b *batch) group(d *decision, i int) {
	p := &d.parts[i]
	letter := byte('v')
	switch p.limit.kind {
	case kindLog:
		b.occurs(withLogs)
		letter = 's'
	case kindSlots:
		b.occurs(withSlots)
		letter = 'n'
	}
	b.args = append(b.args, letter)
	b.args = binary.LittleEndian.AppendUint16(b.args, uint16(b.key(p)))
	switch {
	case d.op == opReset:
	case p.limit.kind.fixed():
		b.fixed(d, i)
	default:
		b.args = p.append(b.args)
	}
}

// fixed appends the parts that share the value of part i, which is the first of them.
func (b *batch) fixed(d *decision, i int) {
	shared := d.shared(i)
	head, numbers, length := append(make([]byte, 0, 64), formatByte, byte(shared)), "", 8
	for j, left := i, shared; left > 0; j++ {
		if l := d.parts[j].limit; l.kind.fixed() {
			head = append(head, l.identity...)
			numbers, length = numbers+l.kind.numbers(), length+l.kind.bytes()
			left--
		}
	}
	b.args = append(b.args, 0, 0, byte(shared))
	at := len(b.args) - 1
	b.args = binary.LittleEndian.AppendUint16(b.args, uint16(len(head)+length))
	for _, text := range []string{"<c" + strconv.Itoa(len(head)) + "d" + numbers, string(head)} {
		b.args = append(append(b.args, byte(len(text))), text...)
	}
	for left := shared; left > 0; i++ {
		if p := &d.parts[i]; p.limit.kind.fixed() {
			b.limit(p, d.op)
			left--
		}
	}
	binary.LittleEndian.PutUint16(b.args[at-2:], uint16(len(b.args)-at))
}

// limit appends one of the parts that share a value.
func (b *batch) limit(p *part, o op) {
	k := p.limit.kind
	switch k {
	case kindWindow:
		b.occurs(withWindows)
	case kindCycle:
		b.occurs(withCycles)
	default:
		b.occurs(withBuckets)
	}
	var space [24]float64
	parameters := p.appendFixed(space[:0], o)
	b.args = append(b.args, p.limit.letter[0], byte(k.count()), byte(1+len(parameters)))
	b.args = append(b.args, "<dddddddddddddddddddddddd"[:1+len(parameters)]...)
	b.args = doubles(b.args, parameters...)
}

// again appends a decision that differs from the previous one only in its key, if d is one.
func (b *batch) again(d *decision) bool {
	before := b.last
	if b.last = nil; d.groups() != 1 || d.op > opRecord || d.identity != "" || d.parts[0].limit.kind == kindSlots {
		return false
	}
	b.last = d
	if before == nil || b.asked != d.op || !d.repeats(before) {
		b.asked = d.op
		return false
	}
	b.repeat(b.key(&d.parts[0]))
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
		b.word("again", key)
		*r = run{first: key, at: len(b.args)}
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
