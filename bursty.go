package weir

import (
	"time"

	"github.com/weirflow/weir/internal/algorithm"
)

// Bursty stores the permits of up to Over of idleness and gives them out at
// once: Guava's SmoothBursty, equal to it to the microsecond. "The next one
// pays": a request of any cost goes as soon as the one before is paid for, so
// there is no cost that can never fit, Limit is MaxCount, and Remaining is that
// or 0.
//
// It is for one subject in process: it starts with nothing stored and fills up
// while idle, so it cannot be forgotten, and rules and engines refuse it. Alone
// with WarmUp it computes with float64, as Guava does. Whoever does not have to
// equal Guava is better served by a TokenBucket.
type Bursty struct {
	Rate Rate
	Over time.Duration // 0, which stores nothing, to MaxPeriod; Guava's default is 1 s
}

var _ Limit = Bursty{}

// Validate reports every field that is out of bounds.
func (l Bursty) Validate() error {
	return joined(l.Rate.check(l.String()), within(l.String(), "over", l.Over, 0, MaxPeriod))
}

// String prints the limit as text: bursty 5/s over 1s.
func (l Bursty) String() string { return "bursty " + l.Rate.String() + " over " + durationText(l.Over) }

// MarshalText is String.
func (l Bursty) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l Bursty) algorithm() algorithm.Algorithm {
	return algorithm.NewBursty(l.Rate.perSecond(), l.Over.Seconds())
}

var burstyKind = kind{
	name:  "bursty",
	read:  rated((*scanner).bursty),
	plans: yes, delays: no, leases: no, alone: yes, oneSubject: yes,
}

func (Bursty) kind() *kind { return &burstyKind }

func (Bursty) window() string { return "" }

// perSecond is the rate as Guava takes it.
func (r Rate) perSecond() float64 { return float64(r.Count) / r.Period.Seconds() }

func (s *scanner) bursty(r Rate) (_ Limit, err error) {
	l := Bursty{Rate: r}
	l.Over, err = s.over()
	return l, err
}

func (s *scanner) over() (time.Duration, error) {
	if !s.accept("over") {
		return 0, s.unexpected(`"over"`)
	}
	return s.duration()
}
