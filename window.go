package weir

import (
	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/duration"
)

// FixedWindow counts up to Rate.Count units in each window of Rate.Period. Windows are aligned to the Unix epoch, so
// a day ends at midnight UTC. It is cheap and easy to explain. Around the end of a window up to twice the count can
// pass within one period.
type FixedWindow struct {
	Rate Rate
}

func (l FixedWindow) validate() error { return joinErrors(l.Rate.check(l.String())) }

// String prints the limit as text: fixed window 100/m.
func (l FixedWindow) String() string { return "fixed window " + l.Rate.String() }

// MarshalText returns the text of String.
func (l FixedWindow) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l FixedWindow) algorithm(t *ticks) algorithm.Algorithm {
	return algorithm.NewFixedWindow(l.Rate.Count, t.count("period", l.Rate.Period))
}

var fixedWindowKind = kind{
	name:   "fixed window",
	read:   rated(func(_ *scanner, r Rate) (Limit, error) { return FixedWindow{r}, nil }),
	revive: func(window string, capacity int64) Limit { return FixedWindow{revivedRate(window, capacity)} },
}

func (FixedWindow) kind() *kind      { return &fixedWindowKind }
func (l FixedWindow) window() string { return duration.PeriodText(l.Rate.Period) }

func (l FixedWindow) describe() Description {
	return Description{
		Rate: l.Rate, Burst: l.Rate.Count, Worst: 2 * l.Rate.Count, Window: l.Rate.Period,
		Refill: RefillWindow, RefillText: "all at once when the next window begins; windows begin at whole multiples of their length since 1970, in UTC",
		Note: boundaryNote,
	}
}

func (l FixedWindow) share(s shares) Limit { return FixedWindow{s.fewer(l.Rate)} }

const boundaryNote = "Up to twice the capacity can go ahead around a boundary."

// SlidingWindow smooths a FixedWindow: it adds the count of the previous window in proportion to the part of it that
// the last Rate.Period still covers. Its two counters approximate a log well if traffic within a window is even.
//
// The scheme is known from Cloudflare. Here the weighted sum is compared exactly, where others round it and admit one
// more.
type SlidingWindow struct {
	Rate Rate
}

func (l SlidingWindow) validate() error { return joinErrors(l.Rate.check(l.String())) }

// String prints the limit as text: sliding window 1000/h.
func (l SlidingWindow) String() string { return "sliding window " + l.Rate.String() }

// MarshalText returns the text of String.
func (l SlidingWindow) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l SlidingWindow) algorithm(t *ticks) algorithm.Algorithm {
	return algorithm.NewSlidingWindow(l.Rate.Count, t.count("period", l.Rate.Period))
}

var slidingWindowKind = kind{
	name:   "sliding window",
	read:   rated(func(_ *scanner, r Rate) (Limit, error) { return SlidingWindow{r}, nil }),
	revive: func(window string, capacity int64) Limit { return SlidingWindow{revivedRate(window, capacity)} },
}

func (SlidingWindow) kind() *kind      { return &slidingWindowKind }
func (l SlidingWindow) window() string { return duration.PeriodText(l.Rate.Period) }

func (l SlidingWindow) describe() Description {
	return Description{
		Rate: l.Rate, Burst: l.Rate.Count, Worst: 2*l.Rate.Count - 1, Window: l.Rate.Period,
		Reset:  2 * l.Rate.Period, // the window before counts, too
		Refill: RefillWindow, RefillText: "during the next window, as the count of this one fades",
		Note: "Steady pressure gets one unit less than the count: the last one fits only where the next window begins, and counts there.",
	}
}

func (l SlidingWindow) share(s shares) Limit { return SlidingWindow{s.fewer(l.Rate)} }

// FirstWindow counts up to Rate.Count units in a window of Rate.Period that begins with the first admitted cost of a key.
// The next window begins with the first admitted cost after its end. INCR with EXPIRE in Redis counts in this way, and so
// do the limiters of Laravel and express-rate-limit, and Python's limits.
//
// A refused cost neither begins nor extends a window. If all units of a window are given back, the window ends. Around the
// end of a window up to 2 Rate.Count - 1 units can pass within one period. Keys have different windows, so refused callers
// do not all return at the same instant, as under a FixedWindow.
type FirstWindow struct {
	Rate Rate
}

func (l FirstWindow) validate() error { return joinErrors(l.Rate.check(l.String())) }

// String prints the limit as text: first window 100/m.
func (l FirstWindow) String() string { return "first window " + l.Rate.String() }

// MarshalText returns the text of String.
func (l FirstWindow) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l FirstWindow) algorithm(t *ticks) algorithm.Algorithm {
	return algorithm.NewFirstWindow(l.Rate.Count, t.count("period", l.Rate.Period))
}

var firstWindowKind = kind{
	name:   "first window",
	read:   rated(func(_ *scanner, r Rate) (Limit, error) { return FirstWindow{r}, nil }),
	revive: func(window string, capacity int64) Limit { return FirstWindow{revivedRate(window, capacity)} },
}

func (FirstWindow) kind() *kind      { return &firstWindowKind }
func (l FirstWindow) window() string { return duration.PeriodText(l.Rate.Period) }

func (l FirstWindow) describe() Description {
	return Description{
		Rate: l.Rate, Burst: l.Rate.Count, Worst: 2*l.Rate.Count - 1, Window: l.Rate.Period, FromFirstUse: true,
		Refill: RefillWindow, RefillText: "all at once when the window ends; a window begins with the first use after the end of the last one",
		Note: "Nearly twice the capacity can go ahead around the end of a window.",
	}
}

func (l FirstWindow) share(s shares) Limit { return FirstWindow{s.fewer(l.Rate)} }
