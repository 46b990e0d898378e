// Package bucket4j is the code of docs/from/bucket4j.md: what users of Java's bucket4j write with Weir.
package bucket4j

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

var began = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Two bandwidths: 1,000 a minute for the business, and 100 a second against bursts. A request takes from both or from none.
func Example_bandwidths() {
	now := began
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now.UnixNano() }})
	rule, err := weir.NewRule("api",
		weir.TokenBucket{Rate: weir.PerMinute(1000), Burst: 1000},
		weir.TokenBucket{Rate: weir.PerSecond(100), Burst: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	take := func(n int64) bool {
		d, err := engine.Take(context.Background(), rule.For("alice", n))
		if err != nil {
			fmt.Println(err)
		} else if !d.Allowed {
			fmt.Printf("%d refused by %v, retry after %v\n", n, rule.Limits()[d.RefusedBy], d.RetryAfter)
		}
		return d.Allowed
	}
	take(100)
	take(1)
	seconds := 1
	for now = now.Add(time.Second); take(100); now = now.Add(time.Second) {
		seconds++
	}
	fmt.Println("100 a second for", seconds, "seconds")
	// Output:
	// 1 refused by token bucket 100/s burst 100, retry after 10ms
	// 100 refused by token bucket 1000/m burst 1000, retry after 1s
	// 100 a second for 11 seconds
}

// A greedy refill comes back token by token, one of intervals all at once.
func Example_refill() {
	greedy, _ := weir.New(weir.TokenBucket{Rate: weir.PerMinute(10), Burst: 10})
	intervally, _ := weir.New(weir.FixedWindow{Rate: weir.PerMinute(10)})
	for _, lim := range []*weir.Limiter{greedy, intervally} {
		lim.TakeAt(began, 10)
		fmt.Print(lim.Limit(), ":")
		for _, s := range []time.Duration{6, 30, 60} {
			fmt.Printf(" %d after %ds", lim.PeekAt(began.Add(s*time.Second), 0).Remaining, s)
		}
		fmt.Println()
	}
	// Output:
	// token bucket 10/m burst 10: 1 after 6s 5 after 30s 10 after 60s
	// fixed window 10/m: 0 after 6s 0 after 30s 10 after 60s
}

// Five a minute become ten a minute while all five are used. Weir keeps the units used: five of the new ten are left.
func Example_replaceConfiguration() {
	lim, _ := weir.NewWith(weir.TokenBucket{Rate: weir.PerMinute(5), Burst: 5}, weir.Options{Clock: began.UnixNano})
	lim.Take(5)
	if err := lim.SetLimit(weir.TokenBucket{Rate: weir.PerMinute(10), Burst: 10}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(lim.Peek(0).Remaining, "now,", lim.PeekAt(began.Add(30*time.Second), 0).Remaining, "after 30s")
	// Output: 5 now, 10 after 30s
}
