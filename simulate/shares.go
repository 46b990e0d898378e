package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// ErrShare is returned when a limit has fewer units than there are processes.
var ErrShare = errors.New("processes cannot share")

// share returns the part of a limit that process i of n holds alone. Together the parts are the limit: units are
// split evenly, the first processes hold the rest, and a rate without a window has n times the period. It refuses a
// limit that has fewer units than there are processes.
func share(limit weir.Limit, i, n int) (weir.Limit, error) {
	if n == 1 {
		return limit, nil
	}
	part := func(units int64) int64 { return units/int64(n) + min(1, max(0, units%int64(n)-int64(i))) }
	units := capacity(limit)
	if units < int64(n) && units > 0 {
		return nil, fmt.Errorf("%w %s: it has %d units for %d processes", ErrShare, limit, units, n)
	}
	longer := func(d time.Duration) time.Duration {
		return time.Duration(instantOf(weir.Rate{Count: 1, Period: d}, int64(n)))
	}
	slower := func(r weir.Rate) weir.Rate { return weir.Rate{Count: r.Count, Period: longer(r.Period)} }
	switch l := limit.(type) {
	case weir.TokenBucket:
		return checked(weir.TokenBucket{Rate: slower(l.Rate), Burst: part(units)})
	case weir.LeakyBucket:
		return checked(weir.LeakyBucket{Rate: slower(l.Rate), Queue: part(units) - 1, NoDelay: part(min(l.NoDelay, l.Queue))})
	case weir.FixedWindow:
		l.Rate.Count = part(units)
		return checked(l)
	case weir.SlidingWindow:
		l.Rate.Count = part(units)
		return checked(l)
	case weir.SlidingLog:
		l.Rate.Count, l.Gap = part(units), longer(l.Gap)
		return checked(l)
	case weir.RateGate:
		l.Rate.Count = part(units)
		return checked(l)
	case weir.Cycle:
		l.Rate.Count = part(units)
		return checked(l)
	case weir.Concurrency:
		l.Slots = part(units)
		return checked(l)
	case weir.Bursty:
		l.Rate = slower(l.Rate)
		return checked(l)
	case weir.WarmUp:
		l.Rate = slower(l.Rate)
		return checked(l)
	case weir.NginxLimitReq:
		l.Rate.Count, l.Burst, l.Delay = part(units), part(l.Burst), part(l.Delay)
		return checked(l)
	case weir.Unlimited, weir.DenyAll:
		return limit, nil
	}
	return nil, fmt.Errorf("%w %s: simulate cannot divide it", ErrShare, limit)
}

// checked refuses a part that is slower than limits can be.
func checked(part weir.Limit) (weir.Limit, error) {
	if err := part.Validate(); err != nil {
		return nil, fmt.Errorf("%w it: a part would be out of bounds: %w", ErrShare, err)
	}
	return part, nil
}

// capacity returns the units that processes share, or 0 for a limit that shares a rate alone, or none.
func capacity(limit weir.Limit) int64 {
	switch l := limit.(type) {
	case weir.TokenBucket:
		if l.Burst > 0 {
			return l.Burst
		}
		return l.Rate.Count
	case weir.LeakyBucket:
		return l.Queue + 1
	case weir.Concurrency:
		return l.Slots
	case weir.Bursty, weir.WarmUp, weir.Unlimited, weir.DenyAll:
		return 0
	}
	return rateOf(limit).Count
}

// rateOf returns the rate of a limit, or a rate of 0 for a limit without one.
func rateOf(limit weir.Limit) weir.Rate {
	switch l := limit.(type) {
	case weir.TokenBucket:
		return l.Rate
	case weir.LeakyBucket:
		return l.Rate
	case weir.FixedWindow:
		return l.Rate
	case weir.SlidingWindow:
		return l.Rate
	case weir.SlidingLog:
		return l.Rate
	case weir.RateGate:
		return l.Rate
	case weir.Cycle:
		return l.Rate
	case weir.Bursty:
		return l.Rate
	case weir.WarmUp:
		return l.Rate
	case weir.NginxLimitReq:
		return l.Rate
	}
	return weir.Rate{}
}
