package weir

import (
	"strings"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/duration"
)

// Cycle grants Rate.Count permits at the start of every Rate.Period. Unused permits are lost at its end. Unlike in a
// FixedWindow, callers may reserve permits of later cycles. It works like resilience4j's limiter, but always refuses a
// cost above Rate.Count.
//
// Without bookings, a cycle uses at most Rate.Count permits. A booking of several permits may take the rest of one
// cycle and the start of the next, which then uses up to 2 Rate.Count - 1. Around the end of a cycle up to twice
// Rate.Count can pass within one period.
type Cycle struct {
	Rate Rate
	// Origin is the start of any cycle, as the time since the Unix epoch. Default: the epoch. Resilience4j counts
	// from the creation of the limiter: time.Duration(time.Now().UnixNano()).
	Origin time.Duration
}

func (l Cycle) validate() error { return joinErrors(l.Rate.check(l.String())) }

// String prints the limit as text: cycle 50/500ms origin 250ms.
func (l Cycle) String() string {
	return "cycle " + l.Rate.String() + durationText(" origin ", l.Origin)
}

// MarshalText returns the text of String.
func (l Cycle) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l Cycle) algorithm(t *ticks) algorithm.Algorithm {
	return algorithm.NewCycle(l.Rate.Count, t.count("period", l.Rate.Period), t.count("origin", l.Origin))
}

var cycleKind = kind{
	name: "cycle",
	read: rated((*scanner).cycle),
	revive: func(window string, capacity int64) Limit {
		period, phase, _ := strings.Cut(window, "+")
		origin, _ := duration.Parse(phase)
		return Cycle{Rate: revivedRate(period, capacity), Origin: origin}
	},
}

func (Cycle) kind() *kind { return &cycleKind }

// window returns a text that distinguishes cycles with different starts, since their numbers differ.
func (l Cycle) window() string {
	phase := (l.Origin%l.Rate.Period + l.Rate.Period) % l.Rate.Period
	return duration.PeriodText(l.Rate.Period) + durationText("+", phase)
}

func (l Cycle) describe() Description {
	return Description{
		Rate: l.Rate, Burst: l.Rate.Count, Worst: 2 * l.Rate.Count, Window: l.Rate.Period,
		Refill: "all at once when the next cycle begins; unused units are lost", Note: boundaryNote,
	}
}

func (l Cycle) share(s shares) Limit { return Cycle{Rate: s.fewer(l.Rate), Origin: l.Origin} }

func (s *scanner) cycle(r Rate) (_ Limit, err error) {
	l := Cycle{Rate: r}
	if s.Accept("origin") {
		l.Origin, err = s.duration()
	}
	return l, err
}
