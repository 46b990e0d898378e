package weir

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
)

// Description describes a limit, so that code can act on any limit without knowing its type. [Describe]
// returns it.
type Description struct {
	// Capacity is the largest cost that a fresh key admits: 0 for a DenyAll, and MaxCount for an Unlimited, a Ban and
	// limits that Owe.
	Capacity int64
	// Rate is the rate in the long run. It is zero for a limit without a rate, and for a Quota, whose windows differ in
	// length.
	Rate Rate
	// Burst is the number of units that go ahead at once after a pause.
	Burst int64
	// Worst is the largest number of units, taken one by one, that go ahead within any Rate.Period. The period excludes its
	// end. Worst is 0 without a Rate.
	Worst int64
	// Window is the longest time until the capacity is back. Reset is the longest time until a key is like a new
	// one, if no unit was recorded beyond the capacity. They are 0 for a limit that Owes or has no Rate, except that a
	// Quota has a Reset.
	Window, Reset time.Duration
	// Calendar is the unit of the windows of a Quota, and 0 for other limits.
	Calendar CalendarUnit
	// Phase is how long after a whole number of periods since 1970 the windows of a Cycle begin. It may be negative.
	Phase time.Duration
	// Gap is the least time between two admitted requests, or 0.
	Gap time.Duration
	// Delay is the longest delay of an admitted request.
	Delay time.Duration
	// Lease bounds how long an unreleased unit is held; 0 means no bound.
	Lease time.Duration
	// Entries is the largest number of entries of 16 bytes that a key stores.
	Entries int64
	// Strikes is the number of refusals that begin a Ban, and 0 for other limits.
	Strikes int64

	Held         bool // units are held until they are released, and not spent
	Delays       bool // it admits with a delay
	Bans         bool // it stands beside other limits, and refuses after they have refused often enough
	Alone        bool // it cannot be combined with other limits in a decision
	Bookable     bool // units can be reserved ahead
	CountsDenied bool // refused costs count, too
	Owes         bool // any cost goes ahead, and the next request waits until it is paid for
	Stateless    bool // no key has a state
	InRules      bool // rules and engines can hold it
	FromFirstUse bool // windows of a key begin with its first use, so keys have different ones
	Planned      bool // a waiting caller that wakes late does not delay later ones

	// Refill is how units come back, and RefillText says it in words. Note says what to know about the limit; it may be empty.
	Refill           Refill
	RefillText, Note string
	// Waiting is the limit for callers that wait and are never refused: the same limit, except that of a LeakyBucket
	// the callers replace the queue, and that a SlidingLog has no refusals to count.
	Waiting Limit
}

// Refill is how the units of a limit come back.
type Refill uint8

const (
	RefillStateless Refill = iota // no key has a state
	RefillRate                    // one by one, at the rate
	RefillWindow                  // all at once, or as the count of the last window fades, when a window begins
	RefillEach                    // each unit one period after it was taken
	RefillRelease                 // when the holder releases the unit
	RefillBan                     // when the ban ends: a Ban has no units
)

// How units come back, in words.
const (
	oneByOne         = "one by one"
	eachAfterAPeriod = "one period after they were taken"
)

// Describe returns the description of a limit. It returns the zero value for nil and for an invalid limit.
func Describe(l Limit) Description {
	a, err := compile(l)
	if err != nil {
		return Description{}
	}
	d := l.describe()
	d.Capacity = a.Capacity()
	if d.Refill == RefillRate && !d.Owes {
		d.Window = d.Rate.Of(d.Capacity)
	}
	d.Reset = cmp.Or(d.Reset, d.Window)
	d.CountsDenied = a.CountsDenied()
	d.Held, d.Delays, d.Alone, d.Bookable = algorithm.Leases(a), algorithm.Delays(a), a.Solitary(), algorithm.Bookable(a)
	d.Stateless, d.Planned, d.InRules = algorithm.Stateless(a), a.Planned(), refusalOf(l, a) == nil
	if d.Waiting == nil {
		d.Waiting = l
	}
	return d
}

// Share returns the part of a limit that process i of n holds alone, with i from 0. Together the parts are the limit:
// units are divided evenly, the first processes hold the rest, and a rate without a window has n times the period. The
// error says that the limit is invalid, has fewer units than there are processes, or that a part would be out of bounds.
func (EngineKit) Share(l Limit, i, n int) (Limit, error) {
	if _, err := compile(l); err != nil {
		return nil, err
	}
	if n < 1 || i < 0 || i >= n {
		return nil, fmt.Errorf("weir: share: process %d of %d is not one of them", i, n)
	}
	if d := Describe(l); d.Capacity < int64(n) && !d.Stateless {
		return nil, fmt.Errorf("weir: share: %s has %d units for %d processes", l, d.Capacity, n)
	}
	if n == 1 {
		return l, nil
	}
	part := l.share(shares{int64(i), int64(n), false})
	if err := part.validate(); err != nil {
		return nil, fmt.Errorf("weir: share: a part of %s would be out of bounds: %w", l, err)
	}
	return part, nil
}

// EqualShare returns the part of a limit that each of n processes holds alone: the smallest part that Share makes. If there are
// fewer units than processes, each holds one unit, so together they admit more than the limit; the same holds where the period or
// gap of an exact part would be out of bounds. An invalid limit, and n below 2, give the limit itself.
func (EngineKit) EqualShare(l Limit, n int) Limit {
	if _, err := compile(l); err != nil || n < 2 {
		return l
	}
	return l.share(shares{int64(n) - 1, int64(n), true})
}

// shares divides the fields of a limit for process i of n. If it must divide, a part is never out of bounds.
type shares struct {
	i, n int64
	must bool
}

// part divides units; each process needs at least one.
func (s shares) part(units int64) int64 {
	if s.must {
		return max(1, s.split(units))
	}
	return s.split(units)
}

func (s shares) split(units int64) int64 { return units/s.n + min(1, max(0, units%s.n-s.i)) }

// longer returns n times a duration that has a bound.
func (s shares) longer(d, most time.Duration) time.Duration {
	long := Rate{1, d}.Of(s.n)
	if s.must {
		return min(long, most)
	}
	return long
}

func (s shares) slower(r Rate) Rate {
	if slow := (Rate{r.Count, Rate{1, r.Period}.Of(s.n)}); !s.must || slow.Period <= MaxPeriod {
		return slow
	}
	return s.fewer(r)
}

func (s shares) fewer(r Rate) Rate { return Rate{s.part(r.Count), r.Period} }
