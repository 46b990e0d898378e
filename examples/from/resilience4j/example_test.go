// Package resilience4j_test has the examples of docs/from/resilience4j.md.
package resilience4j_test

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// limitForPeriod 10, limitRefreshPeriod 1 ms, timeoutDuration 25 ms, and 300 callers at one instant: the first ten go
// at once, ten more with each cycle, and the rest would have to wait longer than the timeout. In a program,
// lim.WaitMax(ctx, 1, timeout) sleeps for the delay that ReserveAt returns here.
func Example_cycle() {
	const timeout = 25 * time.Millisecond
	lim, err := weir.New(weir.Cycle{Rate: weir.Per(10, time.Millisecond), FromFirstUse: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	permitted := map[time.Duration]int{}
	var refused weir.Decision
	for range 300 {
		r, err := lim.ReserveAt(now, 1, timeout)
		switch {
		case err != nil:
			fmt.Println(err)
			return
		case r.Decision.Allowed:
			permitted[r.Decision.Delay]++
		default:
			refused = r.Decision
		}
	}
	fmt.Println(permitted[0], "at once,", permitted[time.Millisecond], "after 1ms,", permitted[timeout], "after", timeout)
	fmt.Println("refused: a permit comes within the timeout again in", refused.RetryAfter)

	d := lim.TakeAt(now.Add(26*time.Millisecond), 1) // cycle 26 has begun, and nobody has reserved it
	fmt.Println("at 26ms:", d.Allowed, "with", d.Remaining, "left")
	// Output:
	// 10 at once, 10 after 1ms, 10 after 25ms
	// refused: a permit comes within the timeout again in 1ms
	// at 26ms: true with 9 left
}

// drainPermissions, and drainPermissionsOnResult: the server behind has said that it wants no more in this cycle.
func Example_drain() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	lim, err := weir.NewWith(weir.Cycle{Rate: weir.PerSecond(50), FromFirstUse: true},
		weir.Options{Clock: func() int64 { return now.UnixNano() }})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lim.Take(1).Remaining, "left")

	now = now.Add(200 * time.Millisecond)
	drained, d := lim.TakeUpTo(weir.MaxCount)
	fmt.Println(drained, "drained,", d.Remaining, "left; more in", lim.Take(1).RetryAfter)
	// Output:
	// 49 left
	// 49 drained, 0 left; more in 800ms
}
