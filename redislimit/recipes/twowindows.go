package recipes

import (
	"context"
	"fmt"
	"math/bits"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// TwoWindows counts like [FixedWindow] and adds the previous window, in proportion to the part of it that the last
// Window still covers, rounded up. It stores two small keys for each subject. It treats the use of the previous
// window as even: if that use came late, more than the limit can pass in the last Window; if early, less.
type TwoWindows struct {
	Client rueidis.Client
	Window time.Duration
	Now    func() time.Time // default: time.Now
}

// Record counts the cost and returns the use in the last Window, including the cost.
func (r TwoWindows) Record(ctx context.Context, key Key, cost int64) (used int64, err error) {
	if err := checked("two windows", r.Window, cost); err != nil {
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
	return r.used(answers[0], answers[2], at)
}

// Fetch returns the use in the last Window.
func (r TwoWindows) Fetch(ctx context.Context, key Key) (used int64, err error) {
	if err := checked("two windows", r.Window, 1); err != nil {
		return 0, err
	}
	at := now(r.Now)
	current, before := r.keys(key, at)
	answers, err := r.Client.Do(ctx, r.Client.B().Mget().Key(current, before).Build()).ToArray()
	if err != nil {
		return 0, fmt.Errorf("recipes: two windows: fetch: %w", err)
	}
	return r.used(answers[0], answers[1], at)
}

// keys returns the keys of the current window and the previous one.
func (r TwoWindows) keys(key Key, at time.Time) (current, before string) {
	window := at.UnixNano() / int64(r.Window)
	name := key.name("two", r.Window) + ":"
	return name + strconv.FormatInt(window, 10), name + strconv.FormatInt(window-1, 10)
}

// used weighs the two counts. A missing count is 0.
func (r TwoWindows) used(current, before rueidis.RedisMessage, at time.Time) (int64, error) {
	counts := [2]int64{}
	for i, message := range []rueidis.RedisMessage{current, before} {
		count, err := message.AsInt64()
		if err != nil && !rueidis.IsRedisNil(err) {
			return 0, fmt.Errorf("recipes: two windows: a count that is not a number: %w", err)
		}
		counts[i] = count
	}
	passed := at.UnixNano() % int64(r.Window)
	return counts[0] + share(counts[1], int64(r.Window)-passed, int64(r.Window)), nil
}

// share returns count × part / whole, rounded up, for 0 <= part <= whole and a count of at least 0.
func share(count, part, whole int64) int64 {
	high, low := bits.Mul64(uint64(max(count, 0)), uint64(part))
	quotient, rest := bits.Div64(high, low, uint64(whole))
	if rest > 0 {
		quotient++
	}
	return int64(quotient)
}
