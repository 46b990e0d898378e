package weir_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
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

// A window begins with the first request that is admitted, here at 10:00:40, and lasts for the period.
func ExampleFirstWindow() {
	limiter, err := weir.New(weir.FirstWindow{Rate: weir.Per(2, time.Minute)})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Date(2026, 1, 1, 10, 0, 40, 0, time.UTC)
	for _, after := range []time.Duration{0, 30 * time.Second, 59 * time.Second, time.Minute} {
		d := limiter.TakeAt(start.Add(after), 1)
		fmt.Println(after, d.Allowed, d.RetryAfter)
	}
	// Output:
	// 0s true 0s
	// 30s true 0s
	// 59s false 1s
	// 1m0s true 0s
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
	limiter, err := weir.NewWith(before, weir.Options{Clock: midnight.UnixNano})
	if err != nil {
		return weir.Decision{}, err
	}
	limiter.Take(units)
	err = limiter.SetLimit(after)
	return limiter.Peek(1), err
}

// networkOf returns the network with which an address shares a limit when there is no room for the address alone: the
// /64 and then the /48 for IPv6, the /24 for IPv4.
func networkOf(key string) (parent string, ok bool) {
	if network, err := netip.ParsePrefix(key); err == nil {
		if network.Bits() != 64 {
			return "", false
		}
		wider, err := network.Addr().Prefix(48)
		return wider.String(), err == nil
	}
	address, err := netip.ParseAddr(key)
	if err != nil {
		return "", false
	}
	bits := 64
	if address = address.Unmap(); address.Is4() {
		bits = 24
	}
	network, err := address.Prefix(bits)
	return network.String(), err == nil
}

// A memory engine holds the states of many keys in the process.
func ExampleNewMemory() {
	ctx := context.Background()
	login, err := weir.ParseRule("login=5/m and fixed window 100/d")
	if err != nil {
		fmt.Println(err)
		return
	}
	engine := weir.NewMemory(weir.MemoryOptions{MaxKeys: 1_000_000})
	d, err := engine.Take(ctx, login.For("alice", 1))
	fmt.Println(d.Allowed, d.Remaining, err)
	// Output: true 4 <nil>
}

// An attacker who owns a /64 has 2^64 addresses. With room for one key, they get the limit of that key and one more
// together.
func ExampleMemoryOptions_parent() {
	rule, err := weir.NewRule("login", weir.FixedWindow{Rate: weir.PerHour(5)})
	if err != nil {
		fmt.Println(err)
		return
	}
	engine := weir.NewMemory(weir.MemoryOptions{
		Clock:   midnight.UnixNano,
		MaxKeys: 1,
		Parent:  networkOf,
	})
	allowed := 0
	for i := range 1000 {
		d, err := engine.Take(context.Background(), rule.For(fmt.Sprintf("2001:db8:1:2::%x", i), 1))
		if err != nil {
			fmt.Println(err)
			return
		}
		if d.Allowed {
			allowed++
		}
	}
	fmt.Println(allowed <= 5+5, "of 1000 addresses no more pass than of two")
	stats := engine.Stats()
	fmt.Println("keys:", stats.Keys <= 1, "shared:", stats.Shared)
	// Output:
	// true of 1000 addresses no more pass than of two
	// keys: true shared: 1
}

// reached returns due, or the time since start if that is less. These examples run on the real clock: on a busy
// machine callers may be late, but never early.
func reached(start time.Time, due time.Duration) time.Duration {
	return min(due, time.Since(start))
}

// A rate gate of 2 in 100 ms, ten iterations in a loop and ten in parallel: start
// i+2 is never less than 100 ms after start i.
func ExampleRateGate() {
	gate, err := weir.New(weir.RateGate{Rate: weir.Per(2, 100*time.Millisecond)})
	if err != nil {
		fmt.Println(err)
		return
	}
	begin := time.Now()
	starts := make(chan time.Duration, 20)
	start := func() {
		if err := gate.Wait(context.Background()); err != nil {
			fmt.Println(err)
		}
		starts <- time.Since(begin)
	}
	for range 10 {
		start()
	}
	for range 10 {
		go start()
	}
	for i := range 20 {
		fmt.Print(min(<-starts, time.Duration(i/2)*100*time.Millisecond), " ")
	}
	fmt.Println()
	// Output:
	// 0s 0s 100ms 100ms 200ms 200ms 300ms 300ms 400ms 400ms 500ms 500ms 600ms 600ms 700ms 700ms 800ms 800ms 900ms 900ms
}

// One gate is shared by goroutines: each passes it before it starts work. Together they never start more than 5 in
// any tenth of a second.
func ExampleLimiter_Wait() {
	gate, err := weir.New(weir.RateGate{Rate: weir.Per(5, 100*time.Millisecond)})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Now()
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for range 5 {
				if err := gate.Wait(context.Background()); err != nil {
					fmt.Println(err)
					return
				}
				// the work
			}
		})
	}
	workers.Wait()
	fmt.Println("15 starts, the last after", reached(start, 200*time.Millisecond))
	// Output: 15 starts, the last after 200ms
}

// paced calls a function for each of the URLs, at the speed of the limiter.
func paced(ctx context.Context, lim *weir.Limiter, urls []string, fetch func(url string)) error {
	for _, url := range urls {
		if err := lim.Wait(ctx); err != nil {
			return err
		}
		fetch(url)
	}
	return nil
}

// A loop waits before each turn.
func ExampleLimiter_Wait_loop() {
	lim, err := weir.New(weir.RateGate{Rate: weir.PerSecond(20)})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = paced(context.Background(), lim, []string{"a", "b", "c"}, func(url string) { fmt.Print(url, " ") })
	fmt.Println(err)
	// Output: a b c <nil>
}

// One gate per tenant, by plan. A caller that cannot wait long enough gets an error at once.
func ExampleKeyed_Wait() {
	plans := map[string]int64{"acme": 50, "globex": 1}
	gates, err := weir.NewKeyedFunc(func(tenant string) weir.Limit {
		return weir.RateGate{Rate: weir.PerMinute(plans[tenant])}
	}, weir.Options{Queue: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, tenant := range []string{"acme", "acme", "globex", "globex"} {
		if err := gates.Wait(ctx, tenant); err != nil {
			fmt.Println(tenant, "refused:", ctx.Err() == nil)
			continue
		}
		fmt.Println(tenant, "goes ahead")
	}
	// Output:
	// acme goes ahead
	// acme goes ahead
	// globex goes ahead
	// globex refused: true
}

func loginRule() (*weir.Rule, error) {
	return weir.NewRule("login",
		weir.TokenBucket{Rate: weir.PerMinute(5)},
		weir.Ban{After: 5, Within: 10 * time.Minute, For: time.Minute, UpTo: 24 * time.Hour})
}

// A client that keeps hammering is out for a minute, then for two, then for four, up to a day.
func ExampleBan() {
	now := int64(0)
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
	rule, err := loginRule()
	if err != nil {
		panic(err)
	}
	for range 400 { // a request every second
		d, err := engine.Take(context.Background(), rule.For("192.0.2.1", 1))
		if err != nil {
			panic(err)
		}
		if d.BanBegun {
			fmt.Printf("banned at %v for %v\n", time.Duration(now), d.RetryAfter)
		}
		now += int64(time.Second)
	}
	// Output:
	// banned at 9s for 1m0s
	// banned at 1m18s for 2m0s
	// banned at 3m27s for 4m0s
}
