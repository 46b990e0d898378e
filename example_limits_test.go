package weir_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// midnight is a boundary of every window whose period divides a day.
var midnight = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// admitted returns the number of admitted attempts out of n at one instant.
func admitted(limiter *weir.Limiter, at time.Time, n int) (count int) {
	for range n {
		if limiter.AllowAt(at, 1) {
			count++
		}
	}
	return count
}

// Around a boundary a fixed window admits twice its count, here within two nanoseconds.
func ExampleFixedWindow() {
	limiter, err := weir.New(weir.FixedWindow{Rate: weir.PerMinute(100)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(admitted(limiter, midnight.Add(-1), 1000), "just before the boundary")
	fmt.Println(admitted(limiter, midnight, 1000), "at the boundary")
	// Output:
	// 100 just before the boundary
	// 100 at the boundary
}

// A sliding window admits nothing more at the boundary, and its full count again in the minute that follows: at most
// one less than twice the count in any interval of one period.
func ExampleSlidingWindow() {
	limiter, err := weir.New(weir.SlidingWindow{Rate: weir.PerMinute(100)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(admitted(limiter, midnight.Add(-1), 1000), "just before the boundary")
	fmt.Println(admitted(limiter, midnight, 1000), "at the boundary")
	fmt.Println(admitted(limiter, midnight.Add(30*time.Second), 1000), "after half a minute")
	fmt.Println(admitted(limiter, midnight.Add(time.Minute-2), 1000), "at the end of the minute")
	// Output:
	// 100 just before the boundary
	// 0 at the boundary
	// 50 after half a minute
	// 49 at the end of the minute
}

// A sliding log has no boundary: it never admits more than its count in any interval of one period.
func ExampleSlidingLog() {
	limiter, err := weir.New(weir.SlidingLog{Rate: weir.PerMinute(100)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(admitted(limiter, midnight.Add(-1), 1000), "just before midnight")
	fmt.Println(admitted(limiter, midnight.Add(time.Minute-2), 1000), "a nanosecond less than a minute later")
	fmt.Println(admitted(limiter, midnight.Add(time.Minute-1), 1000), "a minute later")
	// Output:
	// 100 just before midnight
	// 0 a nanosecond less than a minute later
	// 100 a minute later
}

// A token bucket keeps the units used when its rate changes. SetLimit converts
// at once. An engine converts at the next take, and until then a slower rule
// waits at the rate of the faster one. Here 10 units were spent under 10/s.
func Example_changedRate() {
	spent := weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 10}
	for _, changed := range []weir.TokenBucket{
		spent,
		{Rate: weir.PerSecond(1), Burst: 10},
		{Rate: weir.PerSecond(100), Burst: 10},
	} {
		d, err := onEngine(spent, changed, 10)
		fmt.Println("engine: ", changed, "-", d.Remaining, "left, the next in", d.RetryAfter, err)
		d, err = onLimiter(spent, changed, 10)
		fmt.Println("limiter:", changed, "-", d.Remaining, "left, the next in", d.RetryAfter, err)
	}
	// Output:
	// engine:  token bucket 10/s burst 10 - 0 left, the next in 100ms <nil>
	// limiter: token bucket 10/s burst 10 - 0 left, the next in 100ms <nil>
	// engine:  token bucket 1/s burst 10 - 0 left, the next in 100ms <nil>
	// limiter: token bucket 1/s burst 10 - 0 left, the next in 1s <nil>
	// engine:  token bucket 100/s burst 10 - 0 left, the next in 10ms <nil>
	// limiter: token bucket 100/s burst 10 - 0 left, the next in 10ms <nil>
}

// Counts are kept. Here 60 units were spent under 100 a minute.
func Example_changedCount() {
	spent := weir.FixedWindow{Rate: weir.PerMinute(100)}
	for _, changed := range []weir.FixedWindow{
		{Rate: weir.PerMinute(50)},
		{Rate: weir.PerMinute(200)},
	} {
		d, err := onEngine(spent, changed, 60)
		fmt.Println(changed, "-", d.Remaining, "left, the next in", d.RetryAfter, err)
	}
	// Output:
	// fixed window 50/m - 0 left, the next in 1m0s <nil>
	// fixed window 200/m - 140 left, the next in 0s <nil>
}

// onEngine spends units under one limit and then peeks under another in a rule
// of the same name.
func onEngine(before, after weir.Limit, units int64) (weir.Decision, error) {
	oldRule, err := weir.NewRule("plan", before)
	if err != nil {
		return weir.Decision{}, err
	}
	newRule, err := weir.NewRule("plan", after)
	if err != nil {
		return weir.Decision{}, err
	}
	engine := weir.NewMemory(weir.MemoryOptions{Clock: midnight.UnixNano})
	if _, err := engine.Take(context.Background(), oldRule.For("acme", units)); err != nil {
		return weir.Decision{}, err
	}
	return engine.Peek(context.Background(), newRule.For("acme", 1))
}

// onLimiter spends units under one limit, changes it, and peeks.
func onLimiter(before, after weir.Limit, units int64) (weir.Decision, error) {
	limiter, err := weir.New(before)
	if err != nil {
		return weir.Decision{}, err
	}
	limiter.TakeAt(midnight, units)
	err = limiter.SetLimitAt(midnight, after)
	return limiter.PeekAt(midnight, 1), err
}
