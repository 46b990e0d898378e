package pace

import (
	"cmp"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/fair"
)

// exactKey is a key that callers wait for.
type exactKey struct {
	lines  fair.Heap[*exactLine] // that need it, by the arrival of their next callers
	asks   map[asked]int         // callers by what they ask for
	closed bool                  // during a look: kept from all later callers

	parked fair.Heap[*exactLine] // lines that wait for it to be open
	deputy *exactLine            // the ready line that stands for the parked ones, or nil
	opens  appointment           // while it is shut, because it refuses all its callers alike
}

func (l *exact) newKey() *exactKey {
	k := &exactKey{asks: map[asked]int{}}
	k.opens = newAppointment(func() { l.advance(k) })
	k.lines = fair.NewHeap(byArrival, func(l *exactLine) *int { return l.placeIn(k) })
	k.parked = fair.NewHeap(byArrival, func(l *exactLine) *int { return &l.inParked })
	return k
}

// asked is what a caller asks of a key.
type asked struct {
	rule *weir.Rule
	cost int64
}

// exactUse is the use that a line makes of a key.
type exactUse struct {
	key   *exactKey
	name  string
	place int // of the line in key.lines
}

// uses notes that p waits for its keys, and the line if it is new.
func (l *exact) uses(line *exactLine, p *caller, empty bool) {
	if empty {
		for _, name := range keysIn(p.requests) {
			key := l.keys[name]
			if key == nil {
				key = l.newKey()
				l.keys[name] = key
			}
			line.uses = append(line.uses, exactUse{key: key, name: name, place: -1})
		}
		for i := range line.uses {
			line.uses[i].key.lines.Put(line)
		}
	}
	for i := range line.uses {
		u := &line.uses[i]
		q := onKey(p.requests, u.name)
		u.key.asks[asked{q.Rule, q.Cost}]++
		if len(u.key.asks) > 1 && u.key.opens.planned() { // it may admit the new caller
			l.open(u.key)
		}
	}
}

// gather moves the callers that wait for the same keys as p, the first one in a flow, to its line. They are a flow there.
func (l *exact) gather(line *exactLine, p *caller) {
	var all []*caller
	if key := l.keys[keyOf(&p.requests[0])]; key != nil {
		for _, other := range key.lines.All() {
			if keysOf(other.first().requests) == keysOf(p.requests) {
				all = slices.AppendSeq(all, other.callers.All)
			}
		}
	}
	slices.SortFunc(all, func(a, b *caller) int { return cmp.Compare(a.arrival, b.arrival) })
	for _, e := range all {
		l.remove(e)
		l.enter(line, e)
	}
}

// placeIn returns the place of the line in the heap of a key.
func (l *exactLine) placeIn(key *exactKey) *int {
	for i := range l.uses {
		if l.uses[i].key == key {
			return &l.uses[i].place
		}
	}
	return new(int)
}
