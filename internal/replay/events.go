package replay

import (
	"cmp"
	"iter"
	"slices"
)

// Event is a line that counts: its time, the number of its key, and its cost.
type Event struct {
	At        int64
	Key, Cost uint32
}

// events are many events, in blocks of equal length except for the last. A slice would be copied whenever it grows, and the copies are
// several times as large as it is.
type events struct {
	blocks [][]Event
	n      int
}

// block is the number of events of a block: 1 MB of them.
const block = 1 << 16

func (all *events) add(e Event) {
	if all.n%block == 0 {
		all.blocks = append(all.blocks, make([]Event, 0, min(all.n, block))) // that of a short log grows
	}
	last := &all.blocks[len(all.blocks)-1]
	*last = append(*last, e)
	all.n++
}

func (all *events) at(i int) *Event { return &all.blocks[i/block][i%block] }

// seq returns the events in their order.
func (all *events) seq() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for _, events := range all.blocks {
			for _, e := range events {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// part returns the events from one place to before another. It copies those of several blocks.
func (all *events) part(from, to int) []Event {
	if from/block == (to-1)/block {
		return all.blocks[from/block][from%block : (to-1)%block+1]
	}
	part := make([]Event, 0, to-from)
	for from < to {
		events := all.blocks[from/block][from%block:]
		events = events[:min(len(events), to-from)]
		part = append(part, events...)
		from += len(events)
	}
	return part
}

// group orders the events by key, and those of each key by time and cost, in place. It returns where the events of each key begin, and
// the end of all. Each of the keys has an event.
func (all *events) group(keys int) (starts []int) {
	starts = make([]int, keys+1)
	for e := range all.seq() {
		starts[e.Key+1]++
	}
	for key := range keys {
		starts[key+1] += starts[key]
	}
	next := slices.Clone(starts) // the first place of each key that may hold an event of another
	for key := range keys {
		for next[key] < starts[key+1] {
			here := all.at(next[key])
			there := all.at(next[here.Key])
			next[here.Key]++
			*here, *there = *there, *here
		}
		all.sort(starts[key], starts[key+1])
	}
	return starts
}

// sort orders the events from one place to before another, all of one key, by time and cost.
func (all *events) sort(from, to int) {
	part := all.part(from, to)
	slices.SortFunc(part, func(a, b Event) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Cost, b.Cost)) })
	if from/block != (to-1)/block { // it is a copy
		for i, e := range part {
			*all.at(from + i) = e
		}
	}
}
