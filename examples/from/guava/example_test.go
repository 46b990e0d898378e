// Package guava_test has the examples of docs/from/guava.md. The waits are those of Guava 31.1.
package guava_test

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// acquire prints how long acquire(n) sleeps, and returns when it has. In a program, lim.WaitN(ctx, n) sleeps for the
// delay that ReserveAt returns here.
func acquire(lim *weir.Limiter, now time.Time, n int64) time.Time {
	r, err := lim.ReserveAt(now, n, weir.Never)
	if err != nil {
		fmt.Println(err)
		return now
	}
	fmt.Printf("acquire(%d) sleeps %v\n", n, r.Decision.Delay)
	return now.Add(r.Decision.Delay)
}

// RateLimiter.create(5): any number of permits goes at once, and the next caller waits until they are paid for.
func Example_bursty() {
	lim, err := weir.New(weir.Bursty{Rate: weir.PerSecond(5), Over: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := acquire(lim, noon, 4)
	now = acquire(lim, now, 1)
	now = acquire(lim, now, 20)
	now = acquire(lim, now, 1)

	now = now.Add(time.Minute) // idle: a second's permits are stored
	now = acquire(lim, now, 6)
	acquire(lim, now, 1)
	// Output:
	// acquire(4) sleeps 0s
	// acquire(1) sleeps 800ms
	// acquire(20) sleeps 200ms
	// acquire(1) sleeps 4s
	// acquire(6) sleeps 0s
	// acquire(1) sleeps 200ms
}

// RateLimiter.create(2, 4, TimeUnit.SECONDS): a cold limiter begins at a third of its rate.
func Example_warmUp() {
	lim, err := weir.New(weir.WarmUp{Rate: weir.PerSecond(2), Over: 4 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := noon
	for range 7 {
		now = acquire(lim, now, 1)
	}
	// Output:
	// acquire(1) sleeps 0s
	// acquire(1) sleeps 1.375s
	// acquire(1) sleeps 1.125s
	// acquire(1) sleeps 875ms
	// acquire(1) sleeps 625ms
	// acquire(1) sleeps 500ms
	// acquire(1) sleeps 500ms
}

// A RateLimiter for each tenant, without a map of them. Each begins at its first use.
func Example_eachKey() {
	now := noon
	tenants, err := weir.NewKeyedWith[string](weir.WarmUp{Rate: weir.PerSecond(2), Over: 4 * time.Second},
		weir.Options{Clock: func() int64 { return now.UnixNano() }})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("acme", tenants.Allow("acme"), tenants.Allow("acme"))
	now = now.Add(1375 * time.Millisecond)
	fmt.Println("acme", tenants.Allow("acme"), tenants.Take("acme", 1).RetryAfter)
	fmt.Println("bolt", tenants.Allow("bolt"), tenants.Take("bolt", 1).RetryAfter)
	// Output:
	// acme true false
	// acme true 1.125s
	// bolt true 1.375s
}
