package main

import (
	"fmt"
	"time"
)

// cell is one peer with one workload.
type cell struct {
	peer     peer
	callers  int
	keys     int
	batch    int // keys per call
	refused  bool
	cluster  bool // on the cluster instead of the single server
	duration time.Duration
}

const (
	manyKeys = 10_000
	fewKeys  = 2_000
)

// id identifies a measurement for the targets.
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

// allCells returns all measurements in the order of a repetition.
func allCells(duration, scripts time.Duration) (cells []cell) {
	for _, keys := range []int{manyKeys, 1} {
		cells = append(cells, callerCells(singles(), keys, false, duration)...)
	}
	cells = append(cells, callerCells(clustered(), manyKeys, true, duration)...)
	return append(cells, batchCells(duration, scripts)...)
}

// callerCells measure calls with one decision, from a number of concurrent callers.
func callerCells(peers []peer, keys int, cluster bool, duration time.Duration) (cells []cell) {
	for _, callers := range callerCounts {
		for _, p := range peers {
			cells = append(cells, cell{peer: p, callers: callers, keys: keys, batch: 1, cluster: cluster, duration: duration})
		}
	}
	return cells
}

// batchCells measure calls with many decisions, from one goroutine. The token bucket's is compared with one caller,
// the others with the bare script.
func batchCells(duration, scripts time.Duration) (cells []cell) {
	add := func(p peer, keys int, refused, cluster bool, duration time.Duration) {
		cells = append(cells, cell{peer: p, callers: 1, keys: keys, batch: batchSize, refused: refused, cluster: cluster, duration: duration})
	}
	ours := peer{name: nameWeir, make: algorithms()[0].admitting()}
	add(ours, manyKeys, false, false, duration)
	add(ours, manyKeys, false, true, duration)
	for _, keys := range []int{manyKeys, fewKeys} {
		add(peer{name: nameBareBatch, make: bareEach}, keys, false, false, scripts)
	}
	for _, a := range algorithms() {
		add(peer{name: a.name, make: a.admitting()}, a.keys(), false, false, scripts)
		add(peer{name: a.name, make: a.denying()}, a.keys(), true, false, scripts)
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
