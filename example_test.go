package weir_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// One limiter for one subject. The example passes the times so that the output is always the same; Allow and Take
// read the clock themselves.
func Example_oneLimiter() {
	limiter, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

	admitted := 0
	for range 25 {
		if limiter.AllowAt(noon, 1) {
			admitted++
		}
	}
	fmt.Println(admitted, "of 25 admitted at once")

	d := limiter.TakeAt(noon, 3)
	fmt.Println(d.Allowed, "come back in", d.RetryAfter)

	d = limiter.TakeAt(noon.Add(d.RetryAfter), 3)
	fmt.Println(d.Allowed, "with", d.Remaining, "left of", d.Limit)
	// Output:
	// 20 of 25 admitted at once
	// false come back in 300ms
	// true with 0 left of 20
}

// A rule holds several limits for each of its keys, all or nothing, and one
// decision may ask several rules about several keys.
func Example_twoLimitsForManyKeys() {
	login, err := weir.NewRule("login",
		weir.TokenBucket{Rate: weir.PerMinute(5), Burst: 3},
		weir.FixedWindow{Rate: weir.PerDay(100)})
	if err != nil {
		fmt.Println(err)
		return
	}
	tenant, err := weir.ParseRule("tenant=sliding window 4/m")
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).UnixNano()
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})

	ctx := context.Background()
	for _, user := range []string{"alice", "alice", "alice", "alice", "bob", "carol"} {
		d, err := engine.Take(ctx, login.For(user, 1), tenant.For("acme", 1))
		switch {
		case err != nil:
			fmt.Println("could not decide:", err)
		case d.Allowed:
			fmt.Println(user, "admitted,", d.Remaining, "left under", d.Rule)
		default:
			fmt.Println(user, "refused by", d.Rule, "for", d.Key, "- retry in", d.RetryAfter)
		}
	}
	// Output:
	// alice admitted, 2 left under login
	// alice admitted, 1 left under login
	// alice admitted, 0 left under login
	// alice refused by login for alice - retry in 12s
	// bob admitted, 0 left under tenant
	// carol refused by tenant for acme - retry in 1m15s
}

// Some costs are known only afterwards. Reserve the highest possible cost, and settle the true one.
func Example_costKnownAfterwards() {
	tokens, err := weir.NewRule("tokens", weir.TokenBucket{Rate: weir.PerMinute(10_000)})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).UnixNano()
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
	ctx := context.Background()

	r, err := engine.Reserve(ctx, tokens.For("acme", 4000))
	if err != nil {
		fmt.Println("could not decide:", err)
		return
	}
	defer r.Cancel(ctx) // does nothing once settled
	fmt.Println("reserved:", r.Decision.Remaining, "left")

	if err := r.Settle(ctx, 3127); err != nil {
		fmt.Println(err)
	}
	d, err := engine.Peek(ctx, tokens.For("acme", 0))
	fmt.Println("settled:", d.Remaining, "left", err)
	// Output:
	// reserved: 6000 left
	// settled: 6873 left <nil>
}

// Limits have a text form for flags, files and messages. Errors point at the word.
func ExampleParseLimit() {
	limit, err := weir.ParseLimit("sliding log 5/10s gap 1s")
	fmt.Println(limit, err)

	_, err = weir.ParseLimit("token bucket 10/s bust 20")
	fmt.Println(err)

	_, err = weir.ParseLimit("fixed window 2/ns")
	fmt.Println(err)
	// Output:
	// sliding log 5/10s gap 1s <nil>
	// weir: "token bucket 10/s bust 20": unexpected "bust" at byte 19, want "burst", "and" or the end; did you mean "token bucket 10/s burst 20"?
	// weir: fixed window 2/ns: rate is above 1000000000/s
}

// A leaky bucket admits with a delay, which the caller obeys.
func ExampleLeakyBucket() {
	limiter, err := weir.New(weir.LeakyBucket{Rate: weir.PerSecond(5), Queue: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for range 4 {
		d := limiter.TakeAt(noon, 1)
		fmt.Println(d.Allowed, d.Delay)
	}
	// Output:
	// true 0s
	// true 200ms
	// true 400ms
	// false 0s
}
