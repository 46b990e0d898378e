package enginekit

import (
	"math"
	"math/bits"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
)

// Measure is what an engine measured of one part of a call, for example in a database script.
type Measure struct {
	Request  int // parts of one request have the same number, and stand side by side
	Cost     int64
	Capacity int64

	Before     time.Duration // wait of the cost before the call wrote anything
	After      time.Duration // wait of the cost after the call, if it wrote; not needed for an admitted take
	ResetAfter time.Duration // wait of the capacity after the call
	GapLeft    time.Duration // rest of the limit's gap after the call; 0 if it has none; not needed for an admitted take
	Remaining  int64         // units left after the call
	Delay      time.Duration // delay of the admitted cost, if the limit delays

	CountsDenied bool // the call wrote a cost that it refused
	Bans         bool // the limit is a weir.Ban: After is the rest of the ban, even if the call began it, for any cost
	Full         bool // the call wrote nothing, because the state has no space for what Record would add
}

// Measure fills m in for a part whose state was state before a call at now: the engine need not measure what follows from
// that. m has the cost, op is that of the call, and wrote reports whether it wrote the cost. The limit is one of FunctionsOf,
// for the same tick, and not a Concurrency.
func (f Functions) Measure(m *Measure, op weir.Op, state *State, now int64, tick time.Duration, wrote bool) {
	m.Capacity, m.Delay, m.Full = f.algorithm.Capacity(), 0, false
	s := *state
	if _, m.Bans = f.algorithm.(*algorithm.Ban); m.Bans {
		f.measureBan(m, s, now, tick, wrote)
		return
	}
	before := f.Wait(s, now, m.Cost)
	m.Before = duration(before, tick)
	taken := s
	if m.Cost > 0 && (wrote || before == 0 && algorithm.Delays(f.algorithm)) {
		taken = State{f.algorithm.Take(s.state, now, m.Cost)}
		if delay := f.Delay(taken, now); delay > 0 {
			m.Delay = duration(delay, tick)
		}
	}
	switch {
	case wrote && m.Cost < 0:
		s = f.Give(s, now, -max(m.Cost, -int64(weir.Never)), 0)
	case wrote:
		s = taken
	}
	m.After, m.GapLeft = m.Before, 0
	if op != weir.OpTake || before > 0 { // the answer to an admitted take tells neither
		if wrote {
			m.After = duration(f.Wait(s, now, m.Cost), tick)
		}
		m.GapLeft = duration(f.GapLeft(s, now), tick)
	}
	m.Remaining = f.Room(s, now)
	m.ResetAfter = duration(f.algorithm.Wait(s.state, now, m.Capacity), tick)
}

// measureBan is Measure of a ban; wrote reports whether the call struck.
func (f Functions) measureBan(m *Measure, s State, now int64, tick time.Duration, wrote bool) {
	m.Before = duration(f.Wait(s, now, m.Cost), tick)
	if wrote {
		s, _ = f.Strike(s, now)
	}
	m.After, m.ResetAfter = duration(f.Wait(s, now, 1), tick), duration(f.ResetAfter(s, now), tick)
	m.GapLeft, m.Remaining = 0, f.Room(s, now)
}

// part returns a part whose measurement the verbs of all engines read.
func (m *Measure) part() algorithm.Part {
	p := algorithm.Part{Cost: m.Cost, Request: uint8(m.Request)}
	if !m.Bans {
		p.Algorithm = measured{m: m}
		return p
	}
	p.Algorithm, p.State = anyBan, anyBan.Fresh()
	p.State.B, p.State.Unit = int64(m.After), int64(m.ResetAfter)
	p.Spared, p.Begun = true, m.Cost > 0 && m.Before == 0 && m.After > 0 // the call has struck, or not
	return p
}

// anyBan reads the state of a ban at the instant 0.
var anyBan = algorithm.NewBan(1, 1, 1, 1)

// duration converts a number of ticks, and saturates.
func duration(ticks int64, tick time.Duration) time.Duration {
	if hi, lo := bits.Mul64(uint64(ticks), uint64(tick)); ticks > 0 && (hi > 0 || lo > math.MaxInt64) {
		return weir.Never
	}
	return time.Duration(ticks) * tick
}

// Compose returns the answer to a call from measurements of its parts. The same verbs decide as in every other
// engine. binding is the index of the part for Decision.Rule and Decision.Key. Its index among the limits of its rule is Decision.RefusedBy
// after a refusal, and has to be added to Decision.LimitIndex, which is not 0 if a weir.Ban refuses.
func Compose(op weir.Op, measures []*Measure) (d weir.Decision, binding int) {
	if len(measures) == 1 && op == weir.OpTake && measures[0].plain() {
		return measures[0].taken(), 0
	}
	return compose(op, measures)
}

// plain reports whether taken answers a Take of the part alone. Most calls are such a Take, and the verbs of all
// engines take several times as long.
func (m *Measure) plain() bool {
	return m.Cost > 0 && m.Cost <= m.Capacity && (m.Before == 0 || !m.CountsDenied)
}

// taken returns the answer to a plain Take.
func (m *Measure) taken() weir.Decision {
	d := weir.Decision{Allowed: m.Before == 0, Limit: m.Capacity, Remaining: m.Remaining, RetryAfter: m.Before, ResetAfter: max(m.ResetAfter, 0)}
	if !d.Allowed && m.Cost == m.Capacity {
		d.ResetAfter = m.Before
	}
	if d.LimitReset = d.ResetAfter; d.Allowed {
		d.Delay = m.Delay
		return d
	}
	d.Cause = cause(false, m.GapLeft >= m.Before, false)
	return d
}

// compose has the verbs of all engines decide on the measurements.
func compose(op weir.Op, measures []*Measure) (d weir.Decision, binding int) {
	var space [4]algorithm.Part
	parts := space[:0]
	for _, m := range measures {
		parts = append(parts, m.part())
	}
	answer := ask(op, parts, 0)
	d = decision(&answer)
	d.LimitIndex = uint8(answer.Beside)
	return d, answer.Binding
}

// measured is a limit whose functions return the measurements. Its state records whether the call wrote: A is 0
// before and 1 after.
type measured struct {
	algorithm.Plain
	m *Measure
}

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

func (x measured) GapLeft(algorithm.State, int64) int64 { return int64(x.m.GapLeft) }

func (x measured) Room(algorithm.State, int64) int64 { return x.m.Remaining }

func (x measured) Capacity() int64 { return x.m.Capacity }

// CountsDenied returns true if Take writes what it refuses.
func (x measured) CountsDenied() bool { return x.m.CountsDenied }

// Delay returns the measured delay, for Take and Peek.
func (x measured) Delay(algorithm.State, int64) int64 { return int64(x.m.Delay) }
