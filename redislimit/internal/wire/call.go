package wire

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/weirflow/weir/redislimit/internal/stored"
)

// Batch is one call of the script: the distinct keys and the decisions.
type Batch struct {
	Keys   []string
	index  map[string]int
	Args   []byte
	Spent  []byte    // of each decision, if DenyNewServer is set
	Long   []byte    // the numbers of the keys of long logs
	Now    int64     // us; the expected time of the server's clock
	Shards bool      // releases of slots are published on shards of a cluster
	last   *Decision // the previous one, if it can be repeated
	asked  Op        // its operation when it was added
	run    run       // the repeats of it
	Space  [6]int64  // for the numbers of a state of the reply
}

// run describes repeats of a decision at the end of a batch.
type run struct {
	first, count, step int // the number of their first key, how many they are, and by how much the next key's number is greater
	at, end            int // where args has the count, and the end of args when they were added
}

// The beginning of a batch: a byte for each of these, which says whether the script needs its functions.
const (
	withBuckets = iota
	withWindows
	withCycles
	withQuotas
	withFirsts
	withLogs
	withSlots
	withBans
	withUpTo
	withIdentities
	withWakes // 0 for none, or how the server publishes: see Batch.Shards
	withSets  // decisions of several groups
	withResets
	withs
)

// Add appends a decision.
func (b *Batch) Add(d *Decision) {
	if len(b.Args) == 0 {
		b.Args = append(b.Args, make([]byte, withs)...)
	}
	if b.wakes(d) {
		b.last = nil
	} else if b.again(d) {
		return
	}
	if d.Identity == "" {
		b.decision(d)
		return
	}
	b.last = nil
	b.occurs(withIdentities)
	word := "identified"
	if d.Final {
		word = "final"
	}
	b.word(word, b.number(d.Identity))
	b.Args = append(b.Args, 0, 0, 0, 0)
	at := len(b.Args)
	b.decision(d)
	binary.LittleEndian.PutUint32(b.Args[at-4:], uint32(len(b.Args)-at))
}

// word appends a word and a number.
func (b *Batch) word(text string, number int) {
	b.Args = append(append(b.Args, byte(len(text))), text...)
	b.Args = binary.LittleEndian.AppendUint16(b.Args, uint16(number))
}

// decision appends a decision without its identity.
func (b *Batch) decision(d *Decision) {
	groups := d.groups()
	if groups > 1 {
		b.occurs(withSets)
	}
	b.word(opWords[d.Op], groups)
	switch d.Op {
	case OpReset:
		b.occurs(withResets)
	case OpUndo:
		b.Args = stored.Doubles(b.Args, float64(d.Now), d.past())
	case OpUpTo:
		b.occurs(withUpTo)
		b.Args = stored.Doubles(b.Args, float64(d.Times))
	case OpBook:
		b.Args = stored.Doubles(b.Args, float64(d.Longest))
	case OpWithdraw:
		b.Args = stored.Doubles(b.Args, float64(d.Due), d.past())
	}
	for i := range d.Parts {
		if !d.Parts[i].Joins {
			b.group(d, i)
		}
	}
}

// occurs notes that the script needs some functions.
func (b *Batch) occurs(with int) { b.Args[with] = 1 }

// group appends the part i with the parts that share its value.
func (b *Batch) group(d *Decision, i int) {
	p := &d.Parts[i]
	letter := byte('v')
	switch p.Limit.Kind {
	case stored.KindLog:
		b.occurs(withLogs)
		letter = 's'
	case stored.KindSlots:
		b.occurs(withSlots)
		letter = 'n'
	case stored.KindBan:
		b.occurs(withBans)
		letter = 'b'
	}
	b.Args = append(b.Args, letter)
	b.Args = binary.LittleEndian.AppendUint16(b.Args, uint16(b.key(p)))
	switch {
	case d.Op == OpReset:
	case p.Limit.Fixed:
		b.fixed(d, i)
	case p.Limit.Kind == stored.KindBan:
		b.Args = d.appendBan(b.Args, i)
	default:
		b.Args = p.append(b.Args)
	}
}

// fixed appends the parts that share the value of part i, which is the first of them.
func (b *Batch) fixed(d *Decision, i int) {
	shared := d.shared(i)
	head, numbers, length := append(make([]byte, 0, 64), stored.FormatByte, byte(shared)), "", 8
	for j, left := i, shared; left > 0; j++ {
		if l := d.Parts[j].Limit; l.Fixed {
			head = append(head, l.Identity...)
			numbers, length = numbers+l.Form.Numbers, length+l.Form.Bytes
			left--
		}
	}
	b.Args = append(b.Args, 0, 0, byte(shared))
	at := len(b.Args) - 1
	b.Args = binary.LittleEndian.AppendUint16(b.Args, uint16(len(head)+length))
	for _, text := range []string{"<c" + strconv.Itoa(len(head)) + "d" + numbers, string(head)} {
		b.Args = append(append(b.Args, byte(len(text))), text...)
	}
	for left := shared; left > 0; i++ {
		if p := &d.Parts[i]; p.Limit.Fixed {
			b.limit(p, d)
			left--
		}
	}
	binary.LittleEndian.PutUint16(b.Args[at-2:], uint16(len(b.Args)-at))
}

// limit appends one of the parts that share a value.
func (b *Batch) limit(p *Part, d *Decision) {
	k := p.Limit.Kind
	switch k {
	case stored.KindWindow:
		b.occurs(withWindows)
	case stored.KindCycle:
		b.occurs(withCycles)
	case stored.KindQuota:
		b.occurs(withQuotas)
	case stored.KindFirst:
		b.occurs(withFirsts)
	default:
		b.occurs(withBuckets)
	}
	var space [24]float64
	now := b.Now
	if d.tries > 0 {
		now = d.elsewhere
	}
	parameters := p.appendFixed(space[:0], d.Op, now)
	b.Args = append(b.Args, p.Limit.Letter[0], byte(p.Limit.Form.Count), byte(1+len(parameters)))
	b.Args = append(b.Args, "<dddddddddddddddddddddddd"[:1+len(parameters)]...)
	b.Args = stored.Doubles(b.Args, parameters...)
}

// again appends a decision that differs from the previous one only in its key, if d is one.
func (b *Batch) again(d *Decision) bool {
	before := b.last
	if b.last = nil; d.groups() != 1 || d.Op > OpRecord || d.Identity != "" || d.Parts[0].Limit.Kind == stored.KindSlots {
		return false
	}
	b.last = d
	if before == nil || b.asked != d.Op || !d.repeats(before) {
		b.asked = d.Op
		return false
	}
	b.repeat(b.key(&d.Parts[0]))
	b.run.end = len(b.Args)
	return true
}

// repeat appends a repeat for a key. Repeats whose keys have the same or successive numbers are one run.
func (b *Batch) repeat(key int) {
	r := &b.run
	if r.end == len(b.Args) && r.count == 1 && (key == r.first || key == r.first+1) {
		r.step = key - r.first
	}
	if r.end != len(b.Args) || key != r.first+r.count*r.step {
		b.word("again", key)
		*r = run{first: key, at: len(b.Args)}
		b.Args = append(b.Args, 0, 0, 0)
	}
	r.count++
	binary.LittleEndian.PutUint16(b.Args[r.at:], uint16(r.count))
	b.Args[r.at+2] = byte(r.step)
}

// wakes names the slots that a decision may free before it: the script publishes their keys, so that processes whose callers
// wait for them ask again. It reports whether there are some.
func (b *Batch) wakes(d *Decision) bool {
	var freed []int
	for i := range d.Parts {
		p := &d.Parts[i]
		if p.Limit.Kind == stored.KindSlots && (d.Op == OpReset || d.Op == OpUndo || d.Op == OpRecord && p.Cost < 0) && len(freed) < math.MaxUint16 {
			freed = append(freed, b.key(p))
		}
	}
	if len(freed) == 0 {
		return false
	}
	b.Args[withWakes] = 1
	if b.Shards {
		b.Args[withWakes] = 2
	}
	b.word("wakes", len(freed))
	for _, key := range freed {
		b.Args = binary.LittleEndian.AppendUint16(b.Args, uint16(key))
	}
	return true
}

// key returns the number of the part's key in KEYS.
func (b *Batch) key(p *Part) int {
	known := len(b.Keys)
	number := b.number(p.Key)
	if l := p.Limit; number > known && l.Kind == stored.KindLog && l.Weight >= stored.HeavyWork {
		b.Long = binary.LittleEndian.AppendUint16(b.Long, uint16(number))
	}
	return number
}

// number returns the number of a key in KEYS, from 1.
func (b *Batch) number(key string) int {
	if number, ok := b.index[key]; ok {
		return number
	}
	b.Keys = append(b.Keys, key)
	if b.index == nil {
		b.index = make(map[string]int)
	}
	b.index[key] = len(b.Keys)
	return len(b.Keys)
}

func (b *Batch) Clear() {
	clear(b.Keys)
	b.Keys, b.Args, b.Spent, b.Long = b.Keys[:0], b.Args[:0], b.Spent[:0], b.Long[:0]
	clear(b.index)
	b.last, b.run = nil, run{}
}
