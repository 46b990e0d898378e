package memory

import (
	"unsafe"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
	"github.com/weirflow/weir/internal/table"
)

// cell is the part of a rule that wrote a state, and those fields of the state that every limit uses. An empty slot has
// no part. If the states have words, those of the hash read Elsewhere.
//
// The other fields stand in an array of their own, which a segment has only if one of them is not zero. Most cells are
// logs, gates and leases, which leave them zero: 48 bytes instead of 72.
type cell struct {
	hash    table.Hash
	part    *rule.Part
	a, b, c int64
	log     *[]int64
}

// rarely are the fields of a state that only buckets use, and logs of refusals.
type rarely struct{ unit, converted, promised int64 }

const (
	cellBytes   = int(unsafe.Sizeof(cell{}))
	rarelyBytes = int(unsafe.Sizeof(rarely{}))
)

// slot is the place of a cell, until the segment changes.
type slot struct {
	segment *segment
	at      int
}

func (p slot) exists() bool           { return p.segment != nil }
func (p slot) cell() *cell            { return &p.segment.cells[p.at] }
func (p slot) state() algorithm.State { return p.segment.state(p.at) }
func (p slot) idle(now int64) bool    { return p.segment.idle(p.at, now) }

// state returns the state of a slot.
func (s *segment) state(i int) algorithm.State {
	x := &s.cells[i]
	state := algorithm.State{A: x.a, B: x.b, C: x.c, Log: x.log}
	if s.rarely != nil {
		r := &s.rarely[i]
		state.Unit, state.Converted, state.Promised = r.unit, r.converted, r.promised
	}
	return state
}

// set writes the state of a slot and the part that wrote it. It returns the bytes that this allocated.
func (s *segment) set(i int, p *rule.Part, state algorithm.State) (bytes int) {
	x := &s.cells[i]
	x.a, x.b, x.c = state.A, state.B, state.C
	if x.part != p {
		x.part = p
	}
	if x.log != state.Log {
		x.log = state.Log
	}
	r := rarely{state.Unit, state.Converted, state.Promised}
	if s.rarely == nil {
		if r == (rarely{}) {
			return 0
		}
		s.rarely, bytes = make([]rarely, len(s.cells)), len(s.cells)*rarelyBytes
	}
	s.rarely[i] = r
	return bytes
}

// bytes returns the size of the segment's arrays.
func (s *segment) bytes() int { return len(s.cells)*cellBytes + len(s.rarely)*rarelyBytes }

func (s *segment) idle(i int, now int64) bool {
	return algorithm.Idle(s.cells[i].part.Algorithm, s.state(i), now)
}
