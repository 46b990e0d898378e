package trial

import (
	"cmp"
	"time"

	"github.com/weirflow/weir"
)

// Bound is what one limit promises, in units and in the unit of time that Bounds was given.
type Bound struct {
	Kind           Kind
	Units          float64 // admitted in each stretch or window, held at a time, or the burst
	Rate           float64 // further units in a unit of time
	Period, Origin int64   // of windows and stretches, and of leases
}

// Kind is a kind of bound.
type Kind uint8

const (
	Rate    Kind = iota // Units + Rate × T in any stretch of time T
	Stretch             // Units in any stretch of a period
	Window              // Units in each window that is aligned to the origin
	Held                // Units held at a time, each for at most a period
)

// Tolerance is for the rounding of sums of rates.
const Tolerance = 1e-3

// Bounds returns the bounds of docs/why/guarantees.md.
func Bounds(limits []weir.Limit, unit time.Duration) (all []Bound) {
	flow := func(burst int64, r weir.Rate) Bound {
		return Bound{Kind: Rate, Units: float64(burst), Rate: float64(r.Count) / (float64(r.Period) / float64(unit))}
	}
	each := func(kind Kind, r weir.Rate, origin time.Duration) Bound {
		return Bound{Kind: kind, Units: float64(r.Count), Period: int64(r.Period / unit), Origin: int64(origin / unit)}
	}
	for _, l := range limits {
		switch l := l.(type) {
		case weir.TokenBucket:
			all = append(all, flow(cmp.Or(l.Burst, l.Rate.Count), l.Rate))
		case weir.LeakyBucket:
			all = append(all, flow(l.Queue+1, l.Rate))
		case weir.FixedWindow:
			all = append(all, each(Window, l.Rate, 0))
		case weir.SlidingWindow:
			all = append(all, each(Window, l.Rate, 0))
		case weir.Cycle:
			all = append(all, each(Window, l.Rate, l.Origin))
		case weir.SlidingLog:
			all = append(all, each(Stretch, l.Rate, 0))
		case weir.RateGate:
			all = append(all, each(Stretch, l.Rate, 0))
		case weir.Concurrency:
			all = append(all, each(Held, weir.Rate{Count: l.Slots, Period: cmp.Or(l.Lease, 30*time.Second)}, 0))
		}
	}
	return all
}

// Most returns the bound on net units used from lo to hi, in any order.
func (b Bound) Most(lo, hi int64) float64 {
	switch b.Kind {
	case Rate:
		return b.Units + b.Rate*float64(hi-lo)
	case Window:
		return b.Units * float64(FloorDiv(hi-b.Origin, b.Period)-FloorDiv(lo-b.Origin, b.Period)+1)
	}
	return b.Units * float64((hi-lo)/b.Period+1)
}

// Worst returns the window that comes closest to a bound on admitted units, or exceeds it.
func (b Bound) Worst(used, reliefs []Span) Excess {
	switch b.Kind {
	case Rate:
		return worstWindow(used, reliefs, b.Units, b.Rate, 0)
	case Stretch:
		return worstWindow(used, reliefs, b.Units, 0, b.Period)
	}
	return worstAligned(used, reliefs, b.Units, b.Period)
}

// FloorDiv returns the quotient, rounded down.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
