// Package redisrate_test has the examples of docs/from/redis_rate.md.
package redisrate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

var ctx = context.Background()

// newEngine returns an engine whose time stands still at now. A program with redis_rate has redislimit.Open in its place.
func newEngine(now *time.Time) *weir.Memory {
	*now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	return weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now.UnixNano() }})
}

// limiter.Allow(ctx, "project:123", redis_rate.PerSecond(10)), and AllowAtMost for three.
func Example_allow() {
	var now time.Time
	engine := newEngine(&now)
	project, err := weir.NewRule("project", weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	d, _ := engine.Take(ctx, project.For("123", 1))
	fmt.Println("allowed", d.Allowed, "remaining", d.Remaining)

	d, _ = engine.Take(ctx, project.For("123", 10))
	fmt.Println("allowed", d.Allowed, "retry after", d.RetryAfter)

	_, _ = engine.Take(ctx, project.For("123", 9))
	now = now.Add(250 * time.Millisecond) // two and a half come back
	times, d, _ := weir.TakeUpTo(ctx, engine, 3, project.For("123", 1))
	fmt.Println("allowed", times, "of 3, remaining", d.Remaining)

	now = now.Add(50 * time.Millisecond) // the half was not lost
	d, _ = engine.Take(ctx, project.For("123", 1))
	fmt.Println("allowed", d.Allowed)
	// Output:
	// allowed true remaining 9
	// allowed false retry after 100ms
	// allowed 2 of 3, remaining 0
	// allowed true
}

// A limit with each call: rules of one name share their states, whatever their rate and burst.
func Example_plans() {
	var now time.Time
	engine := newEngine(&now)
	plans := map[string]*weir.Rule{}
	for plan, perMinute := range map[string]int64{"free": 10, "paid": 100} {
		rule, err := weir.NewRule("api", weir.TokenBucket{Rate: weir.PerMinute(perMinute), Burst: perMinute})
		if err != nil {
			fmt.Println(err)
			return
		}
		plans[plan] = rule
	}
	d, _ := engine.Take(ctx, plans["free"].For("alice", 10))
	fmt.Println("free, remaining", d.Remaining)
	d, _ = engine.Take(ctx, plans["paid"].For("alice", 1)) // alice has just paid
	fmt.Println("paid, remaining", d.Remaining)
	// Output:
	// free, remaining 0
	// paid, remaining 89
}
