package pace

import (
	"cmp"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/fair"
)

// exactKey is a key that callers wait for.
type exactKey struct {
	name  string                // with its limits
	of    string                // without them
	lines fair.Heap[*exactLine] // that need it, by the arrival of their next callers
	asks  map[asked]int         // callers by their requests

	parked fair.Heap[*exactLine]
	shutBy *exactLine  // a parked line whose first caller cannot go, nor a later caller of the key; or nil
	opens  appointment // when that caller may go
}

func (l *exact) newKey(name string, r *weir.Request) *exactKey {
	k := &exactKey{name: name, of: nameOf(r), asks: map[asked]int{}}
	k.opens = newAppointment(func() { l.open(k) })
	k.lines = fair.NewHeap(byArrival, func(l *exactLine) *int { return l.placeIn(k) })
	k.parked = fair.NewHeap(byArrival, func(l *exactLine) *int { return &l.inParked })
	l.keys[name], l.names[k.of] = k, append(l.names[k.of], k)
	return k
}

// asked is a caller's request for a key.
type asked struct {
	rule *weir.Rule
	cost int64
}

// exactUse is the use that a line makes of a key.
type exactUse struct {
	key   *exactKey
	place int // the line's place in key.lines
}

// asks returns the caller's request for a key.
func (c *caller) asks(key *exactKey) asked {
	q := onKey(c.requests, key.name)
	return asked{q.Rule, q.Cost}
}

// newLine begins the line of p.
func (l *exact) newLine(name string, mixed bool, p *caller) *exactLine {
	line := &exactLine{name: name, slots: slices.ContainsFunc(p.requests, asksForSlots), mixed: mixed, inReady: -1, inParked: -1}
	for _, name := range keysIn(p.requests) {
		key := l.keys[name]
		if key == nil {
			r := onKey(p.requests, name)
			key = l.newKey(name, &r)
		}
		line.uses = append(line.uses, exactUse{key, -1})
	}
	l.lines[name] = line
	return line
}

// gather removes the callers that wait for the same keys as p, the first one in a flow. They are a flow of its line.
func (l *exact) gather(p *caller) (all []*caller) {
	if key := l.keys[keyOf(&p.requests[0])]; key != nil {
		for _, other := range key.lines.All() {
			if keysOf(other.first().requests) == keysOf(p.requests) {
				all = slices.AppendSeq(all, other.callers.All)
			}
		}
	}
	slices.SortFunc(all, func(a, b *caller) int { return cmp.Compare(a.Arrival, b.Arrival) })
	for _, e := range all {
		l.remove(e)
	}
	return all
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

// park parks a line, which is in none of the heaps. It may shut the key.
func (l *exact) park(line *exactLine, key *exactKey, shuts bool) {
	line.parkedAt = key
	key.parked.Put(line)
	if shuts && (key.shutBy == nil || byArrival(line, key.shutBy)) {
		key.shutBy = line
		l.later.Remove(&key.opens)
	}
}

// unpark takes a line off its key, if it is parked.
func (l *exact) unpark(line *exactLine) {
	if key := line.parkedAt; key != nil {
		line.parkedAt = nil
		key.parked.Remove(line)
		if key.shutBy == line {
			l.open(key)
		}
	}
}

// open makes a key available to its callers.
func (l *exact) open(key *exactKey) {
	key.shutBy = nil
	l.later.Remove(&key.opens)
	l.advance(key)
}

// advance makes the first parked line of an open key ready.
func (l *exact) advance(key *exactKey) {
	if key.shutBy == nil && key.parked.Len() > 0 {
		line := key.parked.Pop()
		line.parkedAt = nil
		l.ready.Put(line)
	}
}

// advanceAll does so for the keys of a line that was ready.
func (l *exact) advanceAll(line *exactLine) {
	for i := range line.uses {
		l.advance(line.uses[i].key)
	}
}

// shut returns a key that is shut for the first caller of the line, or nil.
func (line *exactLine) shut() *exactKey {
	for i := range line.uses {
		if key := line.uses[i].key; key.shutBy != nil && byArrival(key.shutBy, line) {
			return key
		}
	}
	return nil
}

// exactLine is the callers with the same requests, or in flows for the same keys. It has at least one.
type exactLine struct {
	name     string
	slots    bool
	callers  fair.Queue[*caller]
	mixed    bool // the requests of its callers differ
	uses     []exactUse
	parkedAt *exactKey // the key where it is parked, or nil

	inReady, inParked int // the places in the heaps, or -1
}

func (line *exactLine) first() *caller { return line.callers.First() }

func byArrival(a, b *exactLine) bool { return a.first().Arrival < b.first().Arrival }

// remove removes p from its line.
func (l *exact) remove(p *caller) {
	line := p.line
	first := line.first() == p
	if line.callers.Len() == 1 { // before p leaves, because heaps compare first callers
		l.ready.Remove(line)
		l.unpark(line)
		for i := range line.uses {
			line.uses[i].key.lines.Remove(line)
		}
	}
	if p.served {
		line.callers.Serve(&p.Node)
	} else {
		line.callers.Remove(&p.Node)
	}
	for i := range line.uses {
		key := line.uses[i].key
		ask := p.asks(key)
		if key.asks[ask]--; key.asks[ask] == 0 {
			delete(key.asks, ask)
		}
		if len(key.asks) == 0 {
			l.later.Remove(&key.opens)
			l.forget(key)
		}
	}
	switch {
	case line.callers.Len() == 0:
		delete(l.lines, line.name)
		l.advanceAll(line)
	case first:
		l.refile(line)
	}
}

// forget forgets a key that nobody waits for.
func (l *exact) forget(key *exactKey) {
	delete(l.keys, key.name)
	if l.names[key.of] = slices.DeleteFunc(l.names[key.of], func(k *exactKey) bool { return k == key }); len(l.names[key.of]) == 0 {
		delete(l.names, key.of)
	}
}

// refile puts a line whose first caller has changed among those to look at. The look advances its keys.
func (l *exact) refile(line *exactLine) {
	for i := range line.uses {
		line.uses[i].key.lines.Put(line)
	}
	l.unpark(line)
	l.ready.Put(line)
}
