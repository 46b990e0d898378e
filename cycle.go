package weir

import (
	"strconv"
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
	// FromFirstUse begins the first cycle with the first admitted cost, instead of at an Origin. Such a limit is for one
	// subject, or each key of a Keyed, in process: an idle key differs from a new one, so rules and engines refuse it. A
	// Keyed keeps every key until Options.MaxKeys. Then keys that owe nothing are evicted, and begin again.
	FromFirstUse bool
}

func (l Cycle) validate() error {
	problems := l.Rate.check(l.String())
	if l.FromFirstUse && l.Origin != 0 {
		problems = append(problems, &LimitError{Limit: l.String(), Field: "origin", Code: CodeBounds, Reason: "cannot be given for cycles that begin at the first use"})
	}
	return joinErrors(problems)
}

// String prints the limit as text: cycle 50/500ms origin 250ms.
func (l Cycle) String() string {
	text := "cycle " + l.Rate.String() + durationText(" origin ", l.Origin)
	if l.FromFirstUse {
		text += " from first use"
	}
	return text
}

// MarshalText returns the text of String.
func (l Cycle) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l Cycle) algorithm(t *ticks) algorithm.Algorithm {
	if l.FromFirstUse {
		return algorithm.NewOwnCycle(l.Rate.Count, t.count("period", l.Rate.Period))
	}
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
	if l.FromFirstUse {
		return duration.PeriodText(l.Rate.Period) + "+first use"
	}
	phase := (l.Origin%l.Rate.Period + l.Rate.Period) % l.Rate.Period
	return duration.PeriodText(l.Rate.Period) + durationText("+", phase)
}

func (l Cycle) describe() Description {
	return Description{
		Rate: l.Rate, Burst: l.Rate.Count, Worst: 2 * l.Rate.Count, Window: l.Rate.Period,
		Phase: l.Origin % l.Rate.Period, FromFirstUse: l.FromFirstUse,
		Refill: RefillWindow, RefillText: "all at once when the next cycle begins; unused units are lost", Note: boundaryNote,
	}
}

func (l Cycle) share(s shares) Limit {
	l.Rate = s.fewer(l.Rate)
	return l
}

func (s *scanner) cycle(r Rate) (_ Limit, err error) {
	l := Cycle{Rate: r}
	switch {
	case s.Accept("origin"):
		l.Origin, err = s.duration()
	case s.Accept("from"):
		for _, word := range []string{"first", "use"} {
			if !s.Accept(word) {
				return l, s.unexpected(strconv.Quote(word))
			}
		}
		l.FromFirstUse = true
	}
	return l, err
}
