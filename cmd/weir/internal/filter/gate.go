package filter

import (
	"errors"
	"math"
	"time"

	"github.com/weirflow/weir"
)

// maxLag bounds the lateness of a wake-up that does not delay later lines. If the reader of the output stalls for
// longer, or the process was stopped, the lost time does not return as a burst.
const maxLag = 20 * time.Millisecond

// gate decides at planned instants. It spends units as of the time of the request, up to lag before now, so that late
// wake-ups and rounding do not add up. A limit that is strict about every stretch of time has a lag of 0 and spends
// at the time of release.
type gate struct {
	peek, take, record verb
	capacity           int64
	lag                int64
}

type verb func(t time.Time, key string, n int64) weir.Decision

// newGateOf returns the gate of the options. That of a Shared only tells the capacity.
func newGateOf(o *Options) (*gate, error) {
	if o.Shared != nil {
		return &gate{capacity: o.Shared.capacity, lag: int64(maxLag)}, nil
	}
	return newGate(o.Limit, o.Key != nil && !o.Fair)
}

// newGate returns a gate for all keys together, or one for each key.
func newGate(limit weir.Limit, apart bool) (*gate, error) {
	limit, planned, err := forWaiting(limit)
	if err != nil {
		return nil, err
	}
	one, err := weir.New(limit)
	if err != nil {
		return nil, err
	}
	g := &gate{
		peek:     func(t time.Time, _ string, n int64) weir.Decision { return one.PeekAt(t, n) },
		take:     func(t time.Time, _ string, n int64) weir.Decision { return one.TakeAt(t, n) },
		record:   func(t time.Time, _ string, n int64) weir.Decision { return one.RecordAt(t, n) },
		capacity: one.Peek(0).Limit,
	}
	if planned {
		g.lag = int64(maxLag)
	}
	if !apart {
		return g, nil
	}
	keyed, err := weir.NewKeyed[string](limit)
	if err != nil {
		return nil, err
	}
	g.peek, g.take, g.record = keyed.PeekAt, keyed.TakeAt, keyed.RecordAt
	return g, nil
}

// forWaiting adapts the limit to lines that wait instead of being refused, and reports whether it plans. The input
// replaces the queue of a leaky bucket, which then works like a token bucket. A sliding log does not count denied
// lines, because no line is denied.
func forWaiting(limit weir.Limit) (_ weir.Limit, planned bool, err error) {
	switch l := limit.(type) {
	case nil:
		return nil, false, errors.New("pace: no limit")
	case weir.Concurrency:
		return nil, false, &weir.LimitError{Limit: l.String(), Field: "limit", Code: weir.CodeNoPace,
			Reason: "cannot pace a stream, because a stream never releases its slots"}
	case weir.DenyAll:
		return nil, false, &weir.LimitError{Limit: l.String(), Field: "limit", Code: weir.CodeNoPace, Reason: "cannot pace a stream, because it admits nothing"}
	case weir.LeakyBucket:
		if err := l.Validate(); err != nil {
			return nil, false, err
		}
		return weir.TokenBucket{Rate: l.Rate, Burst: min(l.NoDelay, weir.MaxCount-1) + 1}, true, nil
	case weir.NginxLimitReq:
		if err := l.Validate(); err != nil {
			return nil, false, err
		}
		return forWaiting(l.LeakyBucket())
	case weir.SlidingLog:
		l.CountDenied = false
		return l, false, nil
	case weir.TokenBucket, weir.Bursty, weir.WarmUp:
		return l, true, nil
	}
	return limit, false, nil
}

// due returns the instant at which a cost of the key can pass. asked is the time of the request.
func (g *gate) due(key string, asked, now, n int64) int64 {
	t := g.instant(asked, now)
	return after(t, g.peek(time.Unix(0, t), key, n))
}

// instant returns the time at which to spend the units.
func (g *gate) instant(asked, now int64) int64 { return max(asked, now-g.lag) }

// spend takes the units that are due. If a strict limit refuses them, spend returns when to ask again.
func (g *gate) spend(key string, asked, now, n int64) (again int64, spent bool) {
	t := g.instant(asked, now)
	if g.lag > 0 {
		g.record(time.Unix(0, t), key, n) // a debt, as of before it was due
		return 0, true
	}
	d := g.take(time.Unix(0, t), key, n)
	return after(t, d), d.Allowed
}

// after returns when to ask again after a refusal.
func after(t int64, d weir.Decision) int64 {
	if wait := int64(d.RetryAfter); t <= math.MaxInt64-wait {
		return t + wait
	}
	return math.MaxInt64
}

// clock is the wall clock at its creation plus the monotonic clock since, so that a change of the system's clock
// neither stops a stream nor releases a burst.
type clock struct{ start time.Time }

func newClock() clock { return clock{time.Now()} }

func (c clock) read() int64 { return c.start.UnixNano() + int64(time.Since(c.start)) }
