package weir

import (
	"strconv"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
)

// Concurrency lets so many units be held at once, whatever the rate: a
// semaphore, nginx's limit_conn. What is taken is held by a lease until it is
// given back or its time is over.
//
// Take it with [Engine.Reserve] and call Done of the reservation when the work is
// done: that releases this very lease, also late, and never another caller's. On a
// Limiter or Keyed run the work with package pace, which does the same. A
// Take without an identity ([Request.Lease]) is given back by a Record of the
// negative cost, which releases what is held without identity and ends first.
//
// RetryAfter and ResetAfter count on nobody giving back early: they tell when
// enough leases will have ended by themselves. Without a Lease nobody knows when
// that is, and they are [Never] although the cost fits the Limit.
type Concurrency struct {
	Slots int64 // units that can be held at once, 1 to MaxCount
	// Lease is how long a unit is held at most, to MaxPeriod, so that a holder
	// that died frees its slot. Default: until it is given back. A Memory then
	// refuses new keys with ErrNoRoom while MaxKeys keys hold slots.
	Lease time.Duration
}

var _ Limit = Concurrency{}

// Validate reports every field that is out of bounds.
func (l Concurrency) Validate() error {
	return joined(nil,
		bounded(l.String(), "slots", l.Slots, 1, MaxCount),
		within(l.String(), "lease", l.Lease, 0, MaxPeriod))
}

// String prints the limit as text: concurrency 20 lease 30s.
func (l Concurrency) String() string {
	text := "concurrency " + strconv.FormatInt(l.Slots, 10)
	if l.Lease != 0 {
		text += " lease " + durationText(l.Lease)
	}
	return text
}

// MarshalText is String.
func (l Concurrency) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l Concurrency) algorithm(t *ticks) algorithm.Algorithm {
	return algorithm.NewConcurrency(l.Slots, t.of("lease", l.Lease))
}

var concurrencyKind = kind{
	name:   "concurrency",
	read:   (*scanner).concurrency,
	revive: func(_ string, capacity int64) Limit { return Concurrency{Slots: capacity} },
	plans:  no, delays: no, leases: yes, alone: no, oneSubject: no,
}

func (Concurrency) kind() *kind { return &concurrencyKind }

func (Concurrency) window() string { return "" }

func (s *scanner) concurrency() (_ Limit, err error) {
	l := Concurrency{}
	if l.Slots, err = s.count(); err != nil {
		return nil, err
	}
	if s.accept("lease") {
		l.Lease, err = s.duration()
	}
	return l, err
}
