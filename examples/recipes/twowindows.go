package recipes

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"github.com/redis/rueidis"
)

// TwoWindows counts like [FixedWindow] and adds the previous window, in proportion to the part of it that the last
// Window still covers. It stores two small keys for each subject. It treats the use of the previous window as even: if
// that use came late, more than the limit can pass in the last Window; if early, less.
type TwoWindows struct {
	Client   rueidis.Client
	Window   time.Duration
	Rounding Rounding         // rounds the previous window's part; default: RoundUp
	Name     Naming           // default: keys that no other recipe has
	Now      func() time.Time // default: time.Now
}

// Rounding makes whole units of the previous window's part.
type Rounding int

// The roundings of [TwoWindows]. The classic recipe rounds down or to the nearest unit, and so lets up to one unit more
// pass.
const (
	RoundUp Rounding = iota
	RoundDown
	RoundNearest // a half counts as a unit
)

// Record counts the cost and returns the use in the last Window, including the cost.
func (r TwoWindows) Record(ctx context.Context, key Key, cost int64) (used int64, err error) {
	if err := r.checked(cost); err != nil {
		return 0, err
	}
	at := now(r.Now)
	current, before := r.keys(key, at)
	answers, err := transact(ctx, r.Client,
		r.Client.B().Incrby().Key(current).Increment(cost).Build(),
		r.Client.B().Pexpire().Key(current).Milliseconds(milliseconds(2*r.Window)).Build(),
		r.Client.B().Get().Key(before).Build())
	if err != nil {
		return 0, fmt.Errorf("recipes: two windows: record: %w", err)
	}
	counts, err := countsOf(answers[0], answers[2])
	if err != nil {
		return 0, err
	}
	return r.Count(counts.current, counts.before, at), nil
}

// Fetch returns the use in the last Window.
func (r TwoWindows) Fetch(ctx context.Context, key Key) (used int64, err error) {
	at := now(r.Now)
	counts, err := r.fetch(ctx, key, at)
	if err != nil {
		return 0, err
	}
	return r.Count(counts.current, counts.before, at), nil
}

// Weighted returns the use in the last Window before any rounding, and writes nothing.
func (r TwoWindows) Weighted(ctx context.Context, key Key) (used float64, err error) {
	at := now(r.Now)
	counts, err := r.fetch(ctx, key, at)
	if err != nil {
		return 0, err
	}
	return float64(counts.current) + float64(max(counts.before, 0))*float64(r.left(at))/float64(r.Window), nil
}

func (r TwoWindows) checked(cost int64) error {
	if r.Rounding < RoundUp || r.Rounding > RoundNearest {
		return fmt.Errorf("recipes: two windows: rounding %d is not RoundUp, RoundDown or RoundNearest", r.Rounding)
	}
	return checked("two windows", r.Window, cost)
}

// counts are the units of two windows.
type counts struct{ current, before int64 }

func (r TwoWindows) fetch(ctx context.Context, key Key, at time.Time) (counts, error) {
	if err := r.checked(1); err != nil {
		return counts{}, err
	}
	current, before := r.keys(key, at)
	answers, err := r.Client.Do(ctx, r.Client.B().Mget().Key(current, before).Build()).ToArray()
	if err != nil {
		return counts{}, fmt.Errorf("recipes: two windows: fetch: %w", err)
	}
	return countsOf(answers[0], answers[1])
}

// keys returns the keys of the current window and the previous one.
func (r TwoWindows) keys(key Key, at time.Time) (current, before string) {
	number := at.UnixNano() / int64(r.Window)
	return r.Name.counter(key, "two", r.Window, number), r.Name.counter(key, "two", r.Window, number-1)
}

// countsOf reads the counts of both windows. A missing count is 0.
func countsOf(current, before rueidis.RedisMessage) (counts, error) {
	var units [2]int64
	for i, message := range []rueidis.RedisMessage{current, before} {
		count, err := message.AsInt64()
		if err != nil && !rueidis.IsRedisNil(err) {
			return counts{}, fmt.Errorf("recipes: two windows: a count that is not a number: %w", err)
		}
		units[i] = count
	}
	return counts{units[0], units[1]}, nil
}

// Count returns the use in the last Window at an instant by the counts of the window that has it and of the one before: what
// Record and Fetch return for them. The window has to be within the bounds.
func (r TwoWindows) Count(current, before int64, at time.Time) int64 {
	return current + r.Rounding.share(max(before, 0), r.left(at), int64(r.Window))
}

// left returns how much of the previous window the last Window covers.
func (r TwoWindows) left(at time.Time) int64 {
	return int64(r.Window) - at.UnixNano()%int64(r.Window)
}

// share returns count × part / whole, rounded, for 0 <= part <= whole and a count of at least 0.
func (r Rounding) share(count, part, whole int64) int64 {
	high, low := bits.Mul64(uint64(count), uint64(part))
	units, rest := bits.Div64(high, low, uint64(whole))
	if r == RoundUp && rest > 0 || r == RoundNearest && rest >= uint64(whole)-rest {
		units++
	}
	return int64(units)
}
