package weir

import (
	"strconv"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
)

// Concurrency bounds the units held at a time, regardless of the rate: a semaphore, nginx's limit_conn. A lease holds
// a unit until the caller releases it or the lease expires.
//
// Take slots with [Engine.Reserve] and call Done of the reservation when the work is done. Done releases exactly
// these slots, even late, and never another caller's. With a Limiter or Keyed run the work with package pace, which
// does the same. A Take without an identity ([Call.Lease]) is released by a Record of the negative cost, which
// releases the units without identity that expire first.
//
// RetryAfter and ResetAfter do not expect releases: they say when enough leases expire. Without a Lease that time is
// unknown, and they are [Never] although the cost fits the Limit.
type Concurrency struct {
	Slots int64 // units held at a time, 1 to MaxCount
	// Lease bounds the time that a unit is held, up to MaxPeriod, so that a dead holder's slot becomes free. On Redis a
	// reservation renews it. Default: no bound, and 30 seconds on Redis. A Memory then refuses new keys with ErrNoRoom
	// while MaxKeys keys hold slots.
	Lease time.Duration
}

func (l Concurrency) validate() error {
	return joinErrors(nil,
		checkCount(l.String(), "slots", l.Slots, 1, MaxCount),
		checkDuration(l.String(), "lease", l.Lease, 0, MaxPeriod))
}

// String prints the limit as text: concurrency 20 lease 30s.
func (l Concurrency) String() string {
	return "concurrency " + strconv.FormatInt(l.Slots, 10) + durationText(" lease ", l.Lease)
}

// MarshalText returns the text of String.
func (l Concurrency) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l Concurrency) algorithm(t *ticks) algorithm.Algorithm {
	return algorithm.NewConcurrency(l.Slots, t.count("lease", l.Lease))
}

var concurrencyKind = kind{
	name:   "concurrency",
	read:   (*scanner).concurrency,
	revive: func(_ string, capacity int64) Limit { return Concurrency{Slots: capacity} },
}

func (Concurrency) kind() *kind    { return &concurrencyKind }
func (Concurrency) window() string { return "" }

func (l Concurrency) describe() Description {
	d := Description{Burst: l.Slots, Lease: l.Lease, Refill: RefillRelease, RefillText: "when their holder releases them"}
	if l.Lease == 0 {
		d.Note = "A holder that dies keeps its units permanently."
	}
	return d
}

func (l Concurrency) share(s shares) Limit {
	return Concurrency{Slots: s.part(l.Slots), Lease: l.Lease}
}

func (s *scanner) concurrency() (_ Limit, err error) {
	l := Concurrency{}
	if l.Slots, err = s.count(); err != nil {
		return nil, err
	}
	if s.Accept("lease") {
		l.Lease, err = s.duration()
	}
	return l, err
}
