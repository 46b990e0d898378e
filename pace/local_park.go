package pace

import (
	"container/heap"
	"time"
)

// A line that cannot go because of a key is parked there, in order of arrival, so that a look does not go through all
// lines that wait for one key. While the key is neither closed nor shut, the first parked line is among the ready ones:
// it stands for the others.

// park parks a line, which is in none of the heaps.
func (l *local) park(line *queueLine, key *localKey) {
	if key.parked.less == nil {
		key.parked = lineHeap{less: l.ready.less, at: func(l *queueLine) *int { return &l.inParked }}
	}
	line.parkedAt = key
	heap.Push(&key.parked, line)
}

// unpark takes a line off its key, if it is parked.
func (line *queueLine) unpark() {
	if key := line.parkedAt; key != nil {
		line.parkedAt = nil
		key.parked.remove(line)
	}
}

// advance makes the first parked line of an open key ready, unless an earlier one stands for it.
func (l *local) advance(key *localKey) {
	if key.closed || !key.shut.IsZero() || key.parked.Len() == 0 || key.deputy != nil && byArrival(key.deputy, key.parked.lines[0]) {
		return
	}
	line := heap.Pop(&key.parked).(*queueLine)
	line.parkedAt, key.deputy = nil, line
	heap.Push(&l.ready, line)
}

// shutUntil keeps a key, which refuses all its callers alike, from all of them until an instant.
func (l *local) shutUntil(key *localKey, at time.Time) {
	l.unshut(key)
	key.shut = at
	heap.Push(&l.shut, key)
}

// unshut ends the time of a key that is shut.
func (l *local) unshut(key *localKey) {
	if !key.shut.IsZero() {
		key.shut = time.Time{}
		heap.Remove(&l.shut, key.inShut)
	}
}

// open makes a key available to its callers.
func (l *local) open(key *localKey) {
	l.unshut(key)
	l.advance(key)
}

// relieve returns the keys for whose parked lines a ready line stood, which it does no longer.
func (line *queueLine) relieve() (keys []*localKey) {
	for i := range line.uses {
		if key := line.uses[i].key; key.deputy == line {
			key.deputy = nil
			keys = append(keys, key)
		}
	}
	return keys
}
