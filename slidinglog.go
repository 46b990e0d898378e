package weir

import (
	"strconv"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/duration"
)

// SlidingLog stores the time of each unit. It admits at most Rate.Count units in any interval of Rate.Period. It is
// exact, and stores up to Rate.Count entries of 16 bytes for each busy key, even under a flood of denied attempts.
//
// The gap and the counting of denied attempts come from classdojo/rolling-rate-limiter.
type SlidingLog struct {
	Rate Rate
	// Gap is the least time between logged attempts, 0 to Rate.Period.
	Gap time.Duration
	// CountDenied also logs denied attempts, so a caller that never pauses is never admitted. It does not log a cost
	// above the capacity.
	CountDenied bool
}

func (l SlidingLog) validate() error {
	var gap error
	if l.Gap < 0 || l.Gap > max(l.Rate.Period, 0) {
		gap = &LimitError{Limit: l.String(), Field: "gap", Code: CodeBounds, Reason: duration.Spoken(l.Gap) + " is not within 0s and the period"}
	}
	return joinErrors(l.Rate.check(l.String()), gap)
}

// String prints the limit as text: sliding log 5/10s gap 1s count denied.
func (l SlidingLog) String() string {
	text := "sliding log " + l.Rate.String() + durationText(" gap ", l.Gap)
	if l.CountDenied {
		text += " count denied"
	}
	return text
}

// MarshalText returns the text of String.
func (l SlidingLog) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l SlidingLog) algorithm(t *ticks) algorithm.Algorithm {
	return algorithm.NewSlidingLog(l.Rate.Count, t.count("period", l.Rate.Period), t.count("gap", l.Gap), l.CountDenied)
}

var slidingLogKind = kind{
	name:   "sliding log",
	read:   rated((*scanner).slidingLog),
	revive: func(window string, capacity int64) Limit { return SlidingLog{Rate: revivedRate(window, capacity)} },
}

func (SlidingLog) kind() *kind      { return &slidingLogKind }
func (l SlidingLog) window() string { return duration.PeriodText(l.Rate.Period) }

func (l SlidingLog) describe() Description {
	d := Description{
		Rate: l.Rate, Burst: l.Rate.Count, Worst: l.Rate.Count, Window: l.Rate.Period,
		Gap: l.Gap, Entries: l.Rate.Count, Refill: RefillEach, RefillText: eachAfterAPeriod,
		Waiting: SlidingLog{Rate: l.Rate, Gap: l.Gap},
	}
	if l.Gap > 0 {
		d.Burst, d.Worst = 1, min(l.Rate.Count, int64((l.Rate.Period-1)/l.Gap)+1)
	}
	if l.CountDenied {
		d.Note = "Refused attempts count too, so a caller that retries faster than the limit is never admitted again."
	}
	return d
}

func (l SlidingLog) share(s shares) Limit {
	return SlidingLog{Rate: s.fewer(l.Rate), Gap: s.longer(l.Gap, l.Rate.Period), CountDenied: l.CountDenied}
}

func (s *scanner) slidingLog(r Rate) (_ Limit, err error) {
	l := SlidingLog{Rate: r}
	if s.Accept("gap") {
		if l.Gap, err = s.duration(); err != nil {
			return nil, err
		}
	}
	if s.Accept("count") {
		if !s.Accept("denied") {
			return nil, s.unexpected(strconv.Quote("denied"))
		}
		l.CountDenied = true
	}
	return l, nil
}

// RateGate lets at most Rate.Count units go ahead in any interval of Rate.Period, in order of arrival. A waiting caller
// waits for its release, and no caller overtakes it. It works like .NET's RateGate, for any period up to MaxPeriod.
//
// It is exact and stores up to Rate.Count entries of 16 bytes for each busy key, or three times as many with
// bookings. At most twice Rate.Count units can be reserved ahead.
type RateGate struct {
	Rate Rate
}

func (l RateGate) validate() error { return joinErrors(l.Rate.check(l.String())) }

// String prints the limit as text: rate gate 2/s.
func (l RateGate) String() string { return "rate gate " + l.Rate.String() }

// MarshalText returns the text of String.
func (l RateGate) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l RateGate) algorithm(t *ticks) algorithm.Algorithm {
	return algorithm.NewRateGate(l.Rate.Count, t.count("period", l.Rate.Period))
}

var rateGateKind = kind{
	name:   "rate gate",
	read:   rated(func(_ *scanner, r Rate) (Limit, error) { return RateGate{r}, nil }),
	revive: func(window string, capacity int64) Limit { return RateGate{revivedRate(window, capacity)} },
}

func (RateGate) kind() *kind      { return &rateGateKind }
func (l RateGate) window() string { return duration.PeriodText(l.Rate.Period) }

func (l RateGate) describe() Description {
	return Description{
		Rate: l.Rate, Burst: l.Rate.Count, Worst: l.Rate.Count, Window: l.Rate.Period,
		Entries: 3 * l.Rate.Count, Refill: RefillEach, RefillText: eachAfterAPeriod,
	}
}

func (l RateGate) share(s shares) Limit { return RateGate{s.fewer(l.Rate)} }
