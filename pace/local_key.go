package pace

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// localKey is a key that callers wait for.
type localKey struct {
	lines  lineHeap      // that need it, by the arrival of their next callers
	asks   map[asked]int // callers by what they ask for
	closed bool          // during a look: kept from all later callers

	parked lineHeap   // lines that wait for it to be open
	deputy *queueLine // the ready line that stands for the parked ones, or nil
	shut   time.Time  // until when it refuses all its callers alike; zero if it may admit them
	inShut int        // the place in the heap
}

// asked is what a caller asks of a key.
type asked struct {
	rule *weir.Rule
	cost int64
}

// localUse is the use that a line makes of a key.
type localUse struct {
	key   *localKey
	name  string
	place int // of the line in key.lines
}

// uses notes that p waits for its keys, and the line if it is new.
func (l *local) uses(line *queueLine, p *place, empty bool) {
	if empty {
		for _, name := range keysIn(p.requests) {
			key := l.keys[name]
			if key == nil {
				key = &localKey{asks: map[asked]int{}}
				l.keys[name] = key
			}
			line.uses = append(line.uses, localUse{key: key, name: name, place: -1})
		}
		for i := range line.uses {
			u := &line.uses[i]
			if u.key.lines.less == nil {
				u.key.lines = lineHeap{less: l.ready.less, at: func(l *queueLine) *int { return l.placeIn(u.key) }}
			}
			heap.Push(&u.key.lines, line)
		}
	}
	for i := range line.uses {
		u := &line.uses[i]
		q := onKey(p.requests, u.name)
		u.key.asks[asked{q.Rule, q.Cost}]++
		if len(u.key.asks) > 1 && !u.key.shut.IsZero() { // it may admit the new caller
			l.open(u.key)
		}
	}
}

// gather moves the callers that wait for the same keys as p, the first one in a flow, to its line. They are a flow there.
func (l *local) gather(line *queueLine, p *place) {
	var all []*place
	if key := l.keys[keyOf(&p.requests[0])]; key != nil {
		for _, other := range key.lines.lines {
			if flow := other.places.waiting[0]; keysOf(flow.first().requests) == keysOf(p.requests) {
				for e := flow.places.Front(); e != nil; e = e.Next() {
					all = append(all, e.Value.(*place))
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b *place) int { return cmp.Compare(a.arrival, b.arrival) })
	for _, e := range all {
		l.remove(e)
		l.enter(line, e)
	}
}

// placeIn returns the place of the line in the heap of a key.
func (l *queueLine) placeIn(key *localKey) *int {
	for i := range l.uses {
		if l.uses[i].key == key {
			return &l.uses[i].place
		}
	}
	return new(int)
}

// keysIn returns the distinct keys of requests.
func keysIn(requests []weir.Request) (keys []string) {
	for i := range requests {
		keys = append(keys, keyOf(&requests[i]))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// costOn returns the cost of requests on a key.
func costOn(requests []weir.Request, key string) (cost int64) {
	for i := range requests {
		if keyOf(&requests[i]) == key {
			cost += requests[i].Cost
		}
	}
	return cost
}

// onKey returns the requests of a key as one.
func onKey(requests []weir.Request, key string) (q weir.Request) {
	for i := range requests {
		if keyOf(&requests[i]) == key {
			q = requests[i]
			q.Cost = costOn(requests, key)
		}
	}
	return q
}
