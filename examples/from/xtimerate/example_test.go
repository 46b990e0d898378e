// Package xtimerate_test has the example of docs/from/x-time-rate.md.
package xtimerate_test

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// rate.NewLimiter(10, 3), asked at the times and for the numbers of that package's own test of a burst of three.
func Example_burst() {
	lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, ask := range []struct{ ms, n int64 }{
		{0, 2}, {0, 2}, {0, 1}, {0, 1}, {100, 4}, {200, 1}, {300, 1}, {400, 1}, {400, 1}, {400, 1}, {900, 3},
	} {
		d := lim.TakeAt(noon.Add(time.Duration(ask.ms)*time.Millisecond), ask.n)
		fmt.Printf("%3d ms: %d %-5v %d left", ask.ms, ask.n, d.Allowed, d.Remaining)
		switch {
		case d.RetryAfter == weir.Never:
			fmt.Print(", never")
		case !d.Allowed:
			fmt.Print(", again in ", d.RetryAfter)
		}
		fmt.Println()
	}
	// Output:
	//   0 ms: 2 true  1 left
	//   0 ms: 2 false 1 left, again in 100ms
	//   0 ms: 1 true  0 left
	//   0 ms: 1 false 0 left, again in 100ms
	// 100 ms: 4 false 1 left, never
	// 200 ms: 1 true  1 left
	// 300 ms: 1 true  1 left
	// 400 ms: 1 true  1 left
	// 400 ms: 1 true  0 left
	// 400 ms: 1 false 0 left, again in 100ms
	// 900 ms: 3 true  0 left
}
