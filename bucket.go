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

// LeakyBucket releases units one by one at a constant Rate and lets up to Queue of them wait. An admitted caller gets
// a Delay and must wait for it before it goes ahead. A unit that finds the queue full is refused. LeakyBucket shapes
// traffic, while the other limits police it.
//
// It is nginx's limit_req without the rounding; nginx's burst is the Queue. It differs from uber's ratelimit and
// Tokio's interval, which make every caller wait: with a Queue of 0 an early caller is refused, even in Wait. A
// TokenBucket with a Burst of 1 makes that caller wait.
type LeakyBucket struct {
	Rate    Rate
	Queue   int64 // units that may wait, 0 to MaxCount - 1; the capacity is Queue + 1
	NoDelay int64 // excess units that pass at once, 0 to MaxCount - 1; Queue or more means all
}

func (l LeakyBucket) validate() error {
	return joinErrors(l.Rate.check(l.String()),
		checkCount(l.String(), "queue", l.Queue, 0, MaxCount-1),
		checkCount(l.String(), "nodelay", l.NoDelay, 0, MaxCount-1))
}

// String prints the limit as text: leaky bucket 5/s queue 10 nodelay 3.
func (l LeakyBucket) String() string {
	return "leaky bucket " + l.Rate.String() + countText(" queue ", l.Queue) + countText(" nodelay ", l.NoDelay)
}

// MarshalText returns the text of String.
func (l LeakyBucket) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l LeakyBucket) algorithm(t *ticks) algorithm.Algorithm {
	return algorithm.NewLeakyBucket(l.Rate.Count, t.count("period", l.Rate.Period), l.Queue, l.NoDelay)
}

var leakyBucketKind = kind{
	name: "leaky bucket",
	read: rated((*scanner).leakyBucket),
	revive: func(_ string, capacity int64) Limit {
		return LeakyBucket{Rate: PerSecond(1), Queue: capacity - 1}
	},
}

func (LeakyBucket) kind() *kind    { return &leakyBucketKind }
func (LeakyBucket) window() string { return "" }

func (l LeakyBucket) describe() Description {
	undelayed := min(l.NoDelay, l.Queue)
	d := Description{
		Rate: l.Rate, Burst: undelayed + 1, Worst: undelayed + l.Rate.Count,
		Delay:  l.Rate.Of(l.Queue - undelayed),
		Refill: RefillRate, RefillText: oneByOne,
		// The callers themselves are the queue.
		Waiting: TokenBucket{Rate: l.Rate, Burst: undelayed + 1},
	}
	if d.Delay > 0 {
		d.Note = "A request counts when it goes ahead, after its delay."
	}
	return d
}

func (l LeakyBucket) share(s shares) Limit {
	return LeakyBucket{Rate: s.slower(l.Rate), Queue: s.part(l.Queue+1) - 1, NoDelay: s.split(min(l.NoDelay, l.Queue))}
}

func (s *scanner) leakyBucket(r Rate) (_ Limit, err error) {
	l := LeakyBucket{Rate: r}
	if s.Accept("queue") {
		if l.Queue, err = s.count(); err != nil {
			return nil, err
		}
	}
	if s.Accept("nodelay") {
		l.NoDelay, err = s.count()
	}
	return l, err
}
