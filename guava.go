package weir

import (
	"fmt"
	"strconv"
	"strings"
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

func (l Bursty) algorithm(*ticks) algorithm.Algorithm {
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

// WarmUp comes to its Rate gradually: after idleness permits cost more, first
// Cold times as much, and less and less over the time Over. It is Guava's
// SmoothWarmingUp, equal to it to the microsecond, for what is slow until its
// caches and connections are there.
//
// Like Bursty it lets the next one pay, admits any cost, is for one subject in
// process and is refused by rules and engines. It starts cold.
type WarmUp struct {
	Rate Rate
	Over time.Duration // 1 µs to MaxPeriod
	// Cold is how many times as much the first permit costs, 1 to 1e6.
	// Default: 3, as in Guava.
	Cold float64
}

var _ Limit = WarmUp{}

const (
	defaultCold = 3
	maxCold     = 1e6
)

// Validate reports every field that is out of bounds.
func (l WarmUp) Validate() error {
	var cold error
	if !(l.Cold == 0 || l.Cold >= 1 && l.Cold <= maxCold) {
		cold = &LimitError{Limit: l.String(), Field: "cold", Code: CodeBounds, Reason: fmt.Sprintf("%v is not within 1 and %v", l.Cold, int64(maxCold))}
	}
	return joined(l.Rate.check(l.String()), within(l.String(), "over", l.Over, time.Microsecond, MaxPeriod), cold)
}

// String prints the limit as text: warm up 5/s over 4s cold 3.
func (l WarmUp) String() string {
	text := "warm up " + l.Rate.String() + " over " + durationText(l.Over)
	if l.Cold != 0 {
		text += " cold " + strconv.FormatFloat(l.Cold, 'f', -1, 64)
	}
	return text
}

// MarshalText is String.
func (l WarmUp) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l WarmUp) algorithm(*ticks) algorithm.Algorithm {
	cold := l.Cold
	if cold == 0 {
		cold = defaultCold
	}
	micros := l.Over.Microseconds()
	return algorithm.NewWarmUp(l.Rate.perSecond(), float64(micros), cold)
}

var warmUpKind = kind{
	name:  "warm up",
	read:  rated((*scanner).warmUp),
	plans: yes, delays: no, leases: no, alone: yes, oneSubject: yes,
}

func (WarmUp) kind() *kind { return &warmUpKind }

func (WarmUp) window() string { return "" }

func (s *scanner) warmUp(r Rate) (_ Limit, err error) {
	l := WarmUp{Rate: r}
	if l.Over, err = s.over(); err != nil {
		return nil, err
	}
	if s.accept("cold") {
		l.Cold, err = s.factor()
	}
	return l, err
}

// factor reads digits, with a point among them or not: one spelling, without
// the signs, exponents and names that floats can have.
func (s *scanner) factor() (float64, error) {
	word := s.peek()
	f, err := strconv.ParseFloat(word, 64)
	if err != nil || f == 0 || strings.Trim(word, "0123456789.") != "" {
		return 0, s.unexpected("a number such as 3 or 2.5")
	}
	s.next()
	return f, nil
}
