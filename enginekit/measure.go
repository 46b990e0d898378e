package enginekit

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
)

// Measure is what an engine measured of one part of a call, for example in a database script.
type Measure struct {
	Cost     int64
	Capacity int64

	Before     time.Duration // wait of the cost before the call wrote anything
	After      time.Duration // wait of the cost after the call, if it wrote
	ResetAfter time.Duration // wait of the capacity after the call
	Remaining  int64         // units left after the call
	Delay      time.Duration // of the admitted cost, if the limit delays

	CountsDenied bool // the call wrote a cost that it refused
	Full         bool // the call wrote nothing, because the state has no space for what Record would add
}

// Compose returns the answer to a call from measurements of its parts. The same verbs decide as in every other
// engine. binding is the index of the part for Decision.Rule and Decision.Key.
func Compose(op Op, measures []*Measure) (d weir.Decision, binding int) {
	var space [4]algorithm.Part
	parts := space[:0]
	for _, m := range measures {
		parts = append(parts, algorithm.Part{Algorithm: measured{m}, Cost: m.Cost})
	}
	answer := ask(op, parts, 0)
	return decision(&answer), answer.Binding
}

// measured is a limit whose functions return the measurements. Its state records whether the call wrote: A is 0
// before and 1 after.
type measured struct{ m *Measure }

func (x measured) Wait(s algorithm.State, _, n int64) int64 {
	switch {
	case s.A == 0 && n == x.m.Cost:
		return int64(x.m.Before)
	case n == x.m.Capacity:
		return int64(x.m.ResetAfter)
	}
	return int64(x.m.After)
}

func (measured) Fresh() algorithm.State { return algorithm.State{} }

func (measured) Take(algorithm.State, int64, int64) algorithm.State { return algorithm.State{A: 1} }

func (measured) Give(algorithm.State, int64, int64) algorithm.State { return algorithm.State{A: 1} }

// Records reports whether the call had space for the record.
func (x measured) Records(algorithm.State, int64) bool { return !x.m.Full }

func (x measured) Room(algorithm.State, int64) int64 { return x.m.Remaining }

func (x measured) Capacity() int64 { return x.m.Capacity }

func (measured) Solitary() bool { return false }

// CountsDenied returns true if Take writes what it refuses.
func (x measured) CountsDenied() bool { return x.m.CountsDenied }

// Delay returns the measured delay, for Take and Peek.
func (x measured) Delay(algorithm.State, int64) int64 { return int64(x.m.Delay) }
