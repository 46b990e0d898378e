package simulate

import "slices"

// events are the lines that count, as (time, key id). They are stored in blocks, so that growing copies nothing, and
// then grouped by key.
type events struct {
	blocks []block
	count  int

	// Grouped: times[starts[id]:starts[id+1]] are the sorted times of key id.
	times  []int64
	starts []int
}

type block struct {
	times []int64
	keys  []uint32
}

const blockSize = 1 << 16

func (e *events) add(t int64, key uint32) {
	last := len(e.blocks) - 1
	if last < 0 || len(e.blocks[last].times) == blockSize {
		e.blocks = append(e.blocks, block{make([]int64, 0, blockSize), make([]uint32, 0, blockSize)})
		last++
	}
	b := &e.blocks[last]
	b.times = append(b.times, t)
	b.keys = append(b.keys, key)
	e.count++
}

// regroup discards the groups because more events follow.
func (e *events) regroup() { e.times, e.starts = nil, nil }

// group sorts the events by key and time.
//
// A replay needs no other order. Keys do not influence each other, so the order of keys does not matter. The events
// of one key at one instant are identical, so their order does not matter either.
func (e *events) group(keys int) {
	if e.starts != nil {
		return
	}
	e.starts = make([]int, keys+1)
	for _, b := range e.blocks {
		for _, k := range b.keys {
			e.starts[k+1]++
		}
	}
	for k := range keys {
		e.starts[k+1] += e.starts[k]
	}
	e.times = make([]int64, e.count)
	next := slices.Clone(e.starts)
	for _, b := range e.blocks {
		for i, k := range b.keys {
			e.times[next[k]] = b.times[i]
			next[k]++
		}
	}
	for k := range keys {
		slices.Sort(e.of(k))
	}
}

// of returns the sorted times of one key. The caller has called group.
func (e *events) of(key int) []int64 { return e.times[e.starts[key]:e.starts[key+1]] }
