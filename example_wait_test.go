package weir_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// reached is due, or the time since start if that is less. These examples run on
// the real clock: a busy machine may come late, but nothing may come early.
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

// A sequence at 25/s with a burst of 5: five at once, then one every 40 ms.
func ExamplePaced() {
	lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(25), Burst: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	items := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	start := time.Now()
	paced, refused := weir.Paced(context.Background(), lim, slices.Values(items))
	count := 0
	for item := range paced {
		count++
		fmt.Println(item, "after", reached(start, time.Duration(max(0, count-5))*40*time.Millisecond))
	}
	if err := refused(); err != nil {
		fmt.Println("stopped:", err)
	}
	// Output:
	// a after 0s
	// b after 0s
	// c after 0s
	// d after 0s
	// e after 0s
	// f after 40ms
	// g after 80ms
	// h after 120ms
}

// A consumer that takes chunks waits for every item of one, and then has them
// all at once. Pace the chunks instead, if the work is done by the chunk.
func ExamplePaced_chunks() {
	lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(100), Burst: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	items := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

	start := time.Now()
	paced, _ := weir.Paced(ctx, lim, slices.Values(items))
	all := slices.Collect(paced)
	fmt.Println("paced by the item:", len(all), "to work on after", reached(start, 100*time.Millisecond))

	lim.Reset()
	start = time.Now()
	due := time.Duration(0)
	for chunk := range slices.Chunk(items, 5) {
		if err := lim.WaitN(ctx, int64(len(chunk))); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("paced by the chunk:", len(chunk), "to work on after", reached(start, due))
		due += 50 * time.Millisecond
	}
	// Output:
	// paced by the item: 15 to work on after 100ms
	// paced by the chunk: 5 to work on after 0s
	// paced by the chunk: 5 to work on after 50ms
	// paced by the chunk: 5 to work on after 100ms
}

// A download and an upload share 200 KB/s, and the download has three quarters of
// it while both are busy.
func ExamplePacedReader() {
	line, err := weir.NewWith(weir.TokenBucket{Rate: weir.PerSecond(200_000), Burst: 4000}, weir.Options{Weights: []int64{3, 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	var down, up int64
	var streams sync.WaitGroup
	start := time.Now()
	streams.Go(func() {
		r := weir.PacedReader(ctx, weir.InClass(line, 0), strings.NewReader(strings.Repeat("x", 60_000)))
		down, _ = io.Copy(io.Discard, r)
	})
	streams.Go(func() {
		w := weir.PacedWriter(ctx, weir.InClass(line, 1), io.Discard)
		up, _ = io.Copy(w, strings.NewReader(strings.Repeat("y", 24_000)))
	})
	streams.Wait()
	fmt.Println(down, "down and", up, "up after", reached(start, 400*time.Millisecond))
	// Output: 60000 down and 24000 up after 400ms
}

// Throttle a call per key: each host is asked ten times a second at most, and the
// hosts do not wait for one another.
func ExampleDo() {
	perHost, err := weir.NewKeyed[string](weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fetch := func(ctx context.Context, host string) (string, error) {
		return weir.Do(ctx, perHost.For(host), func(context.Context) (string, error) {
			return "page of " + host, nil
		})
	}
	start := time.Now()
	for i, host := range []string{"a.example", "b.example", "a.example"} {
		page, err := fetch(context.Background(), host)
		fmt.Println(page, err, "after", reached(start, time.Duration(i/2)*100*time.Millisecond))
	}
	// Output:
	// page of a.example <nil> after 0s
	// page of b.example <nil> after 0s
	// page of a.example <nil> after 100ms
}

// One gate shared by goroutines: whoever starts work passes it, and together they
// never start more than 5 in any tenth of a second.
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

// One gate per tenant, by plan. A caller that cannot wait long enough is told so
// at once.
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
