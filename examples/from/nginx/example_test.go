// Package nginx_test has the examples of docs/from/nginx.md.
package nginx_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// limit_req: thirty requests at one instant, and what becomes of each.
func Example_limitReq() {
	limit, err := weir.ParseNginx("limit_req_zone $binary_remote_addr zone=perip:10m rate=10r/s; limit_req zone=perip burst=20 delay=8;")
	if err != nil {
		fmt.Println(err)
		return
	}
	lim, err := weir.New(limit)
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	passed, refused := 0, 0
	var delays []time.Duration
	for range 30 {
		switch d := lim.TakeAt(now, 1); {
		case !d.Allowed:
			refused++
		case d.Delay > 0:
			delays = append(delays, d.Delay)
		default:
			passed++
		}
	}
	fmt.Println(limit.LeakyBucket())
	fmt.Println(passed, "pass,", len(delays), "are delayed by", delays[0], "to", delays[len(delays)-1], "and", refused, "are refused")
	// Output:
	// leaky bucket 10/s queue 20 nodelay 8
	// 9 pass, 12 are delayed by 100ms to 1.2s and 9 are refused
}

// limit_conn: two downloads at a time for one address.
func Example_limitConn() {
	engine := weir.NewMemory(weir.MemoryOptions{})
	open, err := weir.NewRule("open", weir.Concurrency{Slots: 2, Lease: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	first, _ := engine.Reserve(ctx, open.For("192.0.2.1", 1))
	second, _ := engine.Reserve(ctx, open.For("192.0.2.1", 1))
	third, _ := engine.Reserve(ctx, open.For("192.0.2.1", 1))
	fmt.Println(first.Decision.Allowed, second.Decision.Allowed, third.Decision.Allowed)
	_ = first.Done(ctx) // the first download has ended
	fourth, _ := engine.Reserve(ctx, open.For("192.0.2.1", 1))
	fmt.Println(fourth.Decision.Allowed)
	// Output:
	// true true false
	// true
}
