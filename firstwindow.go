package weir

import (
	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/duration"
)

// FirstWindow counts up to Rate.Count units in a window of Rate.Period that begins with the first admitted cost of a key.
// The next window begins with the first admitted cost after its end. INCR with EXPIRE in Redis counts in this way, and so
// do the limiters of Laravel and express-rate-limit, and Python's limits.
//
// A refused cost neither begins nor extends a window. If all units of a window are given back, the window ends. Around the
// end of a window up to 2 Rate.Count - 1 units can pass within one period. Keys have different windows, so refused callers
// do not all return at the same instant, as those of a FixedWindow do.
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
