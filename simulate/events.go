package simulate

import (
	"cmp"
	"slices"
)

// events are the lines that count, as (time, key id, cost). They are stored in blocks, so that growing copies nothing,
// and then grouped by key.
type events struct {
	blocks []block
	count  int
	priced bool // some cost is not 1

	// Grouped: times[starts[id]:starts[id+1]] are the sorted times of key id, and costs their costs, if any is not 1.
	times  []int64
	costs  []uint32
	starts []int
}

type block struct {
	times []int64
	keys  []uint32
	costs []uint32 // nil: each is 1
}

const blockSize = 1 << 16

func (e *events) add(t int64, key, cost uint32) {
	last := len(e.blocks) - 1
	if last < 0 || len(e.blocks[last].times) == blockSize {
		e.blocks = append(e.blocks, block{times: make([]int64, 0, blockSize), keys: make([]uint32, 0, blockSize)})
		last++
	}
	b := &e.blocks[last]
	if cost != 1 && b.costs == nil {
		b.costs = slices.Repeat([]uint32{1}, blockSize)[:len(b.times)]
		e.priced = true
	}
	b.times = append(b.times, t)
	b.keys = append(b.keys, key)
	if b.costs != nil {
		b.costs = append(b.costs, cost)
	}
	e.count++
}

// each calls f with every event, in the order of reading.
func (e *events) each(f func(t int64, key, cost uint32)) {
	for _, b := range e.blocks {
		for i, t := range b.times {
			f(t, b.keys[i], b.cost(i))
		}
	}
}

func (b *block) cost(i int) uint32 {
	if b.costs == nil {
		return 1
	}
	return b.costs[i]
}

// regroup discards the groups because more events follow.
func (e *events) regroup() { e.times, e.costs, e.starts = nil, nil, nil }

// group sorts the events by key, time and cost.
//
// A replay needs no other order. Keys do not influence each other, so the order of keys does not matter. The events
// of one key at one instant differ only in their costs, so the order of the lines does not matter either.
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
	if e.priced {
		e.costs = make([]uint32, e.count)
	}
	next := slices.Clone(e.starts)
	for _, b := range e.blocks {
		for i, k := range b.keys {
			e.times[next[k]] = b.times[i]
			if e.priced {
				e.costs[next[k]] = b.cost(i)
			}
			next[k]++
		}
	}
	for k := range keys {
		e.sort(k)
	}
}

// sort orders the events of one key.
func (e *events) sort(key int) {
	times := e.of(key)
	if !e.priced {
		slices.Sort(times)
		return
	}
	costs := e.costs[e.starts[key]:e.starts[key+1]]
	type event struct {
		t    int64
		cost uint32
	}
	both := make([]event, len(times))
	for i, t := range times {
		both[i] = event{t, costs[i]}
	}
	slices.SortFunc(both, func(a, b event) int { return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.cost, b.cost)) })
	for i, one := range both {
		times[i], costs[i] = one.t, one.cost
	}
}

// of returns the sorted times of one key. The caller has called group.
func (e *events) of(key int) []int64 { return e.times[e.starts[key]:e.starts[key+1]] }

// costOf returns the cost of the i-th event of a key. The caller has called group.
func (e *events) costOf(key, i int) int64 {
	if e.costs == nil {
		return 1
	}
	return int64(e.costs[e.starts[key]+i])
}
