package weir

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/duration"
)

// Bursty stores the permits of up to Over of idleness and grants them at once, like Guava's SmoothBursty, to the
// microsecond. The next request pays: a request of any cost goes as soon as the request before it is paid for. So no
// cost is too large, Limit is MaxCount, and Remaining is MaxCount or 0.
//
// It is for one subject, or each key of a Keyed, in process. It starts with nothing stored and fills while idle, so an
// idle key differs from a new one: rules and engines refuse it, and a Keyed keeps every key until Options.MaxKeys. Then
// keys that owe nothing are evicted, and restart without stored permits. Like WarmUp, and unlike all other limits, it
// computes with float64, as Guava does. Use a TokenBucket unless you need Guava's exact behaviour.
type Bursty struct {
	Rate Rate
	Over time.Duration // 0, which stores nothing, to MaxPeriod; Guava's default is 1 s
}

func (l Bursty) validate() error {
	return joinErrors(l.Rate.check(l.String()), checkDuration(l.String(), "over", l.Over, 0, MaxPeriod))
}

// String prints the limit as text: bursty 5/s over 1s.
func (l Bursty) String() string {
	return "bursty " + l.Rate.String() + " over " + duration.Text(l.Over)
}

// MarshalText returns the text of String.
func (l Bursty) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l Bursty) algorithm(*ticks) algorithm.Algorithm {
	return algorithm.NewBursty(l.Rate.perSecond(), l.Over.Seconds())
}

var burstyKind = kind{
	name: "bursty",
	read: rated((*scanner).bursty),
}

func (Bursty) kind() *kind    { return &burstyKind }
func (Bursty) window() string { return "" }

func (l Bursty) describe() Description {
	stored := int64(float64(l.Rate.Count) * l.Over.Seconds() / l.Rate.Period.Seconds())
	return Description{
		Rate: l.Rate, Burst: stored + 1, Worst: stored + l.Rate.Count, Owes: true, Refill: RefillRate,
		RefillText: oneByOne, Note: coldNote,
	}
}

func (l Bursty) share(s shares) Limit { return Bursty{Rate: s.slower(l.Rate), Over: l.Over} }

const coldNote = "A new limiter has no burst. It stores units only while it is idle."

// perSecond returns the rate as Guava takes it.
func (r Rate) perSecond() float64 { return float64(r.Count) / r.Period.Seconds() }

func (s *scanner) bursty(r Rate) (_ Limit, err error) {
	l := Bursty{Rate: r}
	l.Over, err = s.over()
	return l, err
}

func (s *scanner) over() (time.Duration, error) {
	if !s.Accept("over") {
		return 0, s.unexpected(`"over"`)
	}
	return s.duration()
}

// WarmUp reaches its Rate gradually. After idleness the first permit costs Cold times as much, and the cost falls
// over the time Over. It works like Guava's SmoothWarmingUp, to the microsecond. It suits a service that is slow
// until its caches and connections are warm.
//
// Like Bursty, it charges the next request, admits any cost, is for one subject, or each key of a Keyed, in process, and
// is refused by rules and engines. It starts cold. A Keyed evicts a key once it is cold again.
type WarmUp struct {
	Rate Rate
	Over time.Duration // 1 µs to MaxPeriod
	// Cold is the relative cost of the first permit, 1 to 1e6. Default: 3, as in Guava.
	Cold float64
}

const (
	defaultCold = 3
	maxCold     = 1e6
)

func (l WarmUp) validate() error {
	var cold error
	if !(l.Cold == 0 || l.Cold >= 1 && l.Cold <= maxCold) {
		cold = &LimitError{Limit: l.String(), Field: "cold", Code: CodeBounds, Reason: fmt.Sprintf("%v is not within 1 and %v", l.Cold, int64(maxCold))}
	}
	return joinErrors(l.Rate.check(l.String()), checkDuration(l.String(), "over", l.Over, time.Microsecond, MaxPeriod), cold)
}

// String prints the limit as text: warm up 5/s over 4s cold 3.
func (l WarmUp) String() string {
	text := "warm up " + l.Rate.String() + " over " + duration.Text(l.Over)
	if l.Cold != 0 {
		text += " cold " + strconv.FormatFloat(l.Cold, 'f', -1, 64)
	}
	return text
}

// MarshalText returns the text of String.
func (l WarmUp) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l WarmUp) algorithm(*ticks) algorithm.Algorithm {
	return algorithm.NewWarmUp(l.Rate.perSecond(), float64(l.Over.Microseconds()), cmp.Or(l.Cold, defaultCold))
}

var warmUpKind = kind{
	name: "warm up",
	read: rated((*scanner).warmUp),
}

func (WarmUp) kind() *kind    { return &warmUpKind }
func (WarmUp) window() string { return "" }

func (l WarmUp) describe() Description {
	return Description{
		Rate: l.Rate, Burst: 1, Worst: l.Rate.Count, Owes: true, Refill: RefillRate,
		RefillText: "further apart after a pause, and otherwise one by one", Note: coldNote,
	}
}

func (l WarmUp) share(s shares) Limit {
	return WarmUp{Rate: s.slower(l.Rate), Over: l.Over, Cold: l.Cold}
}

func (s *scanner) warmUp(r Rate) (_ Limit, err error) {
	l := WarmUp{Rate: r}
	if l.Over, err = s.over(); err != nil {
		return nil, err
	}
	if s.Accept("cold") {
		l.Cold, err = s.factor()
	}
	return l, err
}

// factor reads digits with an optional point. Signs, exponents and special values are not accepted, so a number has
// one spelling.
func (s *scanner) factor() (float64, error) {
	word := s.Peek()
	f, err := strconv.ParseFloat(word, 64)
	if err != nil || f == 0 || strings.Trim(word, "0123456789.") != "" {
		return 0, s.unexpected("a number such as 3 or 2.5")
	}
	s.Next()
	return f, nil
}
