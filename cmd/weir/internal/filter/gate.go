package filter

import (
	"errors"
	"math"
	"time"

	"github.com/weirflow/weir"
)

// maxLag is how late a wake-up can be and not delay what comes after it. If the
// reader of the output makes the filter wait for longer, or the process was
// stopped, that time is lost: the lines of it do not come in a burst.
const maxLag = 20 * time.Millisecond

// gate decides at instants on a plan: units are spent as of when they were asked
// for, a little before now, and so neither a late wake-up nor the rounding of an
// instant adds up. A limit that is strict about any stretch of time gets the
// instants of the releases: its lag is 0.
type gate struct {
	peek, take, record verb
	capacity           int64
	lag                int64
}

type verb func(t time.Time, key string, n int64) weir.Decision

// newGate makes a gate for all keys together, or for each apart.
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

// forWaiting is the limit as it is for a line that waits instead of being refused,
// and whether it plans. The queue of a leaky bucket is then the input itself,
// so that it works like a token bucket; and a waiting line is never denied.
func forWaiting(limit weir.Limit) (_ weir.Limit, planned bool, err error) {
	switch l := limit.(type) {
	case nil:
		return nil, false, errors.New("pace: no limit")
	case weir.Concurrency:
		return nil, false, &weir.LimitError{Limit: l.String(), Field: "limit", Code: weir.CodeNoPace,
			Reason: "cannot pace a stream: its slots are held until they are released, and a stream releases none"}
	case weir.DenyAll:
		return nil, false, &weir.LimitError{Limit: l.String(), Field: "limit", Code: weir.CodeNoPace, Reason: "cannot pace a stream: it admits nothing"}
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

// due is when a cost of the key can go that was asked for at an instant up to
// now.
func (g *gate) due(key string, asked, now, n int64) int64 {
	t := g.instant(asked, now)
	return after(t, g.peek(time.Unix(0, t), key, n))
}

// instant is what to take the units as of.
func (g *gate) instant(asked, now int64) int64 { return max(asked, now-g.lag) }

// spend takes the units of what has become due. If a strict limit does not have
// them after all, it tells when to ask again.
func (g *gate) spend(key string, asked, now, n int64) (again int64, spent bool) {
	t := g.instant(asked, now)
	if g.lag > 0 {
		g.record(time.Unix(0, t), key, n) // a debt, as of before it was due
		return 0, true
	}
	d := g.take(time.Unix(0, t), key, n)
	return after(t, d), d.Allowed
}

// after is when to ask again.
func after(t int64, d weir.Decision) int64 {
	if wait := int64(d.RetryAfter); t <= math.MaxInt64-wait {
		return t + wait
	}
	return math.MaxInt64
}

// clock is the time when it was made plus the monotonic clock since: setting
// the clock of the machine neither stops a pipe nor lets it rush.
type clock struct{ start time.Time }

func newClock() clock { return clock{time.Now()} }

func (c clock) read() int64 { return c.start.UnixNano() + int64(time.Since(c.start)) }
