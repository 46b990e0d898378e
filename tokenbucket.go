package weir

import (
	"cmp"

	"github.com/weirflow/weir/internal/algorithm"
)

// TokenBucket admits Burst units at once and Rate in the long run: at most Burst + Rate × T in any interval T. Tokens
// refill continuously. It is the usual limit to start with.
//
// It is the generic cell rate algorithm of ATM (ITU-T I.371). Its whole state is one instant, the theoretical arrival
// time, which is exact for any rate.
type TokenBucket struct {
	Rate  Rate
	Burst int64 // capacity in units, up to MaxCount; 0 means Rate.Count
}

func (l TokenBucket) burst() int64 { return cmp.Or(l.Burst, l.Rate.Count) }

func (l TokenBucket) validate() error {
	return joinErrors(l.Rate.check(l.String()), checkCount(l.String(), "burst", l.Burst, 0, MaxCount))
}

// String prints the limit as text: token bucket 10/s burst 20.
func (l TokenBucket) String() string {
	return "token bucket " + l.Rate.String() + countText(" burst ", l.Burst)
}

// MarshalText returns the text of String.
func (l TokenBucket) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l TokenBucket) algorithm(t *ticks) algorithm.Algorithm {
	return algorithm.NewTokenBucket(l.Rate.Count, t.count("period", l.Rate.Period), l.burst())
}

var tokenBucketKind = kind{
	name: "token bucket",
	read: rated((*scanner).tokenBucket),
	revive: func(_ string, capacity int64) Limit {
		return TokenBucket{Rate: PerSecond(1), Burst: capacity}
	},
}

func (TokenBucket) kind() *kind    { return &tokenBucketKind }
func (TokenBucket) window() string { return "" }

func (l TokenBucket) describe() Description {
	return Description{Rate: l.Rate, Burst: l.burst(), Worst: l.burst() + l.Rate.Count - 1, Refill: RefillRate, RefillText: oneByOne}
}

func (l TokenBucket) share(s shares) Limit {
	return TokenBucket{Rate: s.slower(l.Rate), Burst: s.part(l.burst())}
}

func (s *scanner) tokenBucket(r Rate) (_ Limit, err error) {
	l := TokenBucket{Rate: r}
	if s.Accept("burst") {
		at := s.At
		l.Burst, err = s.count()
		if err == nil && l.Burst == 0 {
			s.At = at
			err = s.unexpected("a burst of at least 1")
		}
	}
	return l, err
}
