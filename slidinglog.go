package weir

import (
	"strconv"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
)

// SlidingLog remembers when each unit was taken: never more than Rate.Count in
// any stretch of Rate.Period. Exact, and pays for it with up to Rate.Count
// entries of 16 bytes for each busy key; never more, also under a flood of
// denied attempts.
//
// The gap and the counting of denied attempts are the rules of
// classdojo/rolling-rate-limiter.
type SlidingLog struct {
	Rate Rate
	// Gap is the least time since the last logged attempt, 0 to Rate.Period.
	Gap time.Duration
	// CountDenied logs denied attempts too: who hammers is never admitted. A
	// cost above the capacity is not logged.
	CountDenied bool
}

var _ Limit = SlidingLog{}

// Validate reports every field that is out of bounds.
func (l SlidingLog) Validate() error {
	var gap error
	if l.Gap < 0 || l.Gap > max(l.Rate.Period, 0) {
		gap = &LimitError{Limit: l.String(), Field: "gap", Code: CodeBounds, Reason: spokenDuration(l.Gap) + " is not within 0s and the period"}
	}
	return joined(l.Rate.check(l.String()), gap)
}

// String prints the limit as text: sliding log 5/10s gap 1s count denied.
func (l SlidingLog) String() string {
	text := "sliding log " + l.Rate.String()
	if l.Gap != 0 {
		text += " gap " + durationText(l.Gap)
	}
	if l.CountDenied {
		text += " count denied"
	}
	return text
}

// MarshalText is String.
func (l SlidingLog) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l SlidingLog) algorithm(t *ticks) algorithm.Algorithm {
	return algorithm.NewSlidingLog(l.Rate.Count, t.of("period", l.Rate.Period), t.of("gap", l.Gap), l.CountDenied)
}

var slidingLogKind = kind{
	name:   "sliding log",
	read:   rated((*scanner).slidingLog),
	revive: func(window string, capacity int64) Limit { return SlidingLog{Rate: revivedRate(window, capacity)} },
	plans:  no, delays: no, leases: no, alone: depends, oneSubject: no, // alone if it counts denied attempts
}

func (SlidingLog) kind() *kind { return &slidingLogKind }

func (l SlidingLog) window() string { return periodText(l.Rate.Period) }

func (s *scanner) slidingLog(r Rate) (_ Limit, err error) {
	l := SlidingLog{Rate: r}
	if s.accept("gap") {
		if l.Gap, err = s.duration(); err != nil {
			return nil, err
		}
	}
	if s.accept("count") {
		if !s.accept("denied") {
			return nil, s.unexpected(strconv.Quote("denied"))
		}
		l.CountDenied = true
	}
	return l, nil
}
