package enginekit

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
)

// row is the last version of a row of the store that the engine has read or written. The engine takes a row that it has
// not seen for a missing one until a swap fails. The mutex of the engine guards the first fields. The others belong to
// the flight for which the row is busy.
type row struct {
	key    string
	busy   bool
	queued int // asks in the queue that use it

	version   int64
	states    []saved
	stale     bool // a swap has failed, and the engine does not know the row
	damaged   bool // its bytes are no states
	loaded    bool // in this attempt
	conflicts int  // swaps that failed one after another

	next    []saved // the states after the decisions of this attempt
	changed bool
	group   *group
}

// saved is the state of one limit in a row. It is never changed, because states outlive a failed attempt.
type saved struct {
	name    string
	ends    int64 // when it answers like a new one
	numbers []int64
}

// linger is how long a state is kept after its end: for clocks that step back, and for undos.
const linger = int64(time.Minute)

// rowFormat begins the bytes of a row.
const rowFormat = 1

func (r *row) state(name string) *saved {
	for i := range r.next {
		if r.next[i].name == name {
			return &r.next[i]
		}
	}
	return nil
}

// put replaces a state, or removes it if it has no numbers.
func (r *row) put(s saved, now int64) {
	before := len(r.next)
	next := make([]saved, 0, before+1)
	for _, x := range r.next {
		if past := x.ends < now && uint64(now-x.ends) > uint64(linger); x.name != s.name && !past {
			next = append(next, x)
		}
	}
	if s.numbers != nil {
		next = append(next, s)
	}
	r.changed = r.changed || s.numbers != nil || len(next) < before || r.damaged
	r.next = next
}

// identityPrefix begins the names of decisions. That of a line begins otherwise, and those of limits have no such byte.
const identityPrefix = "\x00i"

// remember puts a decision, and forgets the oldest one if there are too many.
func (r *row) remember(s saved, now int64) {
	known := 0
	for i := len(r.next) - 1; i >= 0 && known < mostRemembered; i-- {
		if strings.HasPrefix(r.next[i].name, identityPrefix) {
			if known++; known == mostRemembered {
				r.put(saved{name: r.next[i].name}, now)
			}
		}
	}
	r.put(s, now)
}

// set takes in a row of the store.
func (r *row) set(found Row) {
	states, ok := decodeRow(found.State)
	r.version, r.states, r.stale, r.damaged = found.Version, states, false, !ok
}

// write returns the write of a row after the decisions.
func (r *row) write() Write {
	w := Write{Key: r.key, Old: r.version}
	if r.changed {
		w.New, w.State, w.Ends = int64(weir.Kit.NewLease()), encodeRow(r.next), endOf(r.next)
	}
	return w
}

func endOf(states []saved) (ends int64) {
	for i := range states {
		ends = max(ends, states[i].ends)
	}
	return ends
}

// encodeRow returns the bytes of states: for each its name, end and numbers.
func encodeRow(states []saved) []byte {
	b := []byte{rowFormat}
	for _, s := range states {
		b = append(binary.AppendUvarint(b, uint64(len(s.name))), s.name...)
		b = binary.AppendUvarint(binary.AppendVarint(b, s.ends), uint64(len(s.numbers)))
		for _, n := range s.numbers {
			b = binary.AppendVarint(b, n)
		}
	}
	return b
}

// decodeRow reads the bytes of encodeRow. A missing row has none.
func decodeRow(b []byte) (states []saved, ok bool) {
	if len(b) == 0 {
		return nil, true
	}
	d := decoder{b[1:], b[0] != rowFormat}
	for len(d.b) > 0 && !d.bad {
		s := saved{name: string(d.bytes(d.length())), ends: d.number()}
		s.numbers = make([]int64, d.length())
		for i := range s.numbers {
			s.numbers[i] = d.number()
		}
		states = append(states, s)
	}
	return states, !d.bad
}

// decoder reads numbers from bytes.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) number() int64 {
	n, size := binary.Varint(d.b)
	d.b = d.b[max(size, 0):]
	d.bad = d.bad || size <= 0
	return n
}

// length reads a number of things of at least a byte each.
func (d *decoder) length() int {
	n, size := binary.Uvarint(d.b)
	d.b = d.b[max(size, 0):]
	if size <= 0 || n > uint64(len(d.b)) {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *decoder) bytes(n int) []byte {
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

// stateName returns the name of a part's state within its row.
func stateName(p *Part) string { return strings.TrimPrefix(p.Name, p.Request.Rule.Name()+"\x00") }

// load sets the state of a part from its row.
func (p *Part) load(r *row) error {
	p.State, p.Changed = p.Fresh(), false
	s := r.state(stateName(p))
	if s == nil {
		return nil
	}
	state, ok := p.FromNumbers(slices.Clone(s.numbers))
	if !ok {
		return errDamaged
	}
	p.State = state
	return nil
}

// store puts the changed state of a part into its row.
func (p *Part) store(r *row, now int64, reset bool) {
	s := saved{name: stateName(p)}
	if !reset {
		s.numbers = p.AppendNumbers([]int64{}, p.State)
		s.ends = algorithm.AddSaturating(now, p.Keep(p.State, now))
		if algorithm.Converts(p.algorithm) {
			s.ends = max(s.ends, p.State.state.Promised)
		}
	}
	r.put(s, now)
}
