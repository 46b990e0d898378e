package main

import (
	"fmt"
	"time"
)

// cell is one peer under one workload.
type cell struct {
	peer     peer
	callers  int
	keys     int
	batch    int // keys of a call
	refused  bool
	cluster  bool // on the cluster, not on the single server
	duration time.Duration
}

const manyKeys = 10_000

// id names what is measured; the targets ask for results by it.
type id struct {
	peer          string
	callers, keys int
	batch         int
	refused       bool
	cluster       bool
}

func (c cell) id() id { return id{c.peer.name, c.callers, c.keys, c.batch, c.refused, c.cluster} }

func (i id) String() string {
	text := fmt.Sprintf("%s, %d callers, %d keys", i.peer, i.callers, i.keys)
	if i.batch > 1 {
		text += fmt.Sprintf(", batches of %d", i.batch)
	}
	if i.refused {
		text += ", refused"
	}
	if i.cluster {
		text += ", cluster"
	}
	return text
}

var callerCounts = []int{1, 16, 128}

// allCells are all that is measured, in the order of a repetition. Those of a
// batch of the token bucket from one goroutine are beside one caller's.
func allCells(duration, scripts time.Duration) (cells []cell) {
	for _, keys := range []int{manyKeys, 1} {
		for _, callers := range callerCounts {
			for _, p := range singles() {
				cells = append(cells, cell{peer: p, callers: callers, keys: keys, batch: 1, duration: duration})
			}
		}
	}
	for _, callers := range callerCounts {
		for _, p := range clustered() {
			cells = append(cells, cell{peer: p, callers: callers, keys: manyKeys, batch: 1, cluster: true, duration: duration})
		}
	}
	each := peer{name: nameWeir, make: weirEach(algorithms()[0].admits, 0)}
	cells = append(cells, cell{peer: each, callers: 1, keys: manyKeys, batch: batchSize, cluster: true, duration: duration})
	batch := func(name string, refused bool, make func(string) (ask, func(), error), duration time.Duration) {
		p := peer{name: name, make: make}
		cells = append(cells, cell{peer: p, callers: 1, keys: manyKeys, batch: batchSize, refused: refused, duration: duration})
	}
	batch(nameWeir, false, weirEach(algorithms()[0].admits, 0), duration)
	batch(nameBareBatch, false, bareEach, scripts)
	for _, a := range algorithms() {
		batch(a.name, false, weirEach(a.admits, 0), scripts)
		batch(a.name, true, weirEach(a.denies, a.fill), scripts)
	}
	return cells
}

func keysOf(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%06d", i)
	}
	return keys
}
