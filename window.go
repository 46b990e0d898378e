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

// Validate reports every field that is out of bounds.
func (l FixedWindow) Validate() error { return joinErrors(l.Rate.check(l.String())) }

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
	plans:  no, delays: no, leases: no, alone: no, oneSubject: no,
}

func (FixedWindow) kind() *kind      { return &fixedWindowKind }
func (l FixedWindow) window() string { return duration.PeriodText(l.Rate.Period) }

// SlidingWindow smooths a FixedWindow: it adds the count of the previous window in proportion to the part of it that
// the last Rate.Period still covers. Its two counters approximate a log well if traffic within a window is even.
//
// The scheme is known from Cloudflare. Here the weighted sum is compared exactly, where others round it and admit one
// more.
type SlidingWindow struct {
	Rate Rate
}

// Validate reports every field that is out of bounds.
func (l SlidingWindow) Validate() error { return joinErrors(l.Rate.check(l.String())) }

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
	plans:  no, delays: no, leases: no, alone: no, oneSubject: no,
}

func (SlidingWindow) kind() *kind      { return &slidingWindowKind }
func (l SlidingWindow) window() string { return duration.PeriodText(l.Rate.Period) }
