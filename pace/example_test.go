package pace_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// reached returns due, or the time since start if that is less. These examples run on the real clock: on a busy
// machine callers may be late, but never early.
func reached(start time.Time, due time.Duration) time.Duration {
	return min(due, time.Since(start))
}

// A sequence at 25/s with a burst of 5: five at once, then one every 40 ms.
func ExampleSeq() {
	lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(25), Burst: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	items := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	start := time.Now()
	paced, refused := pace.Seq(context.Background(), lim, slices.Values(items))
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

// A consumer that takes chunks waits for every item of one, and then has them all at once. If the work is done by the
// chunk, pace the chunks instead.
func ExampleSeq_chunks() {
	lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(100), Burst: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	items := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

	start := time.Now()
	paced, _ := pace.Seq(ctx, lim, slices.Values(items))
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
func ExampleReader() {
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
		r := pace.Reader(ctx, pace.InClass(line, 0), strings.NewReader(strings.Repeat("x", 60_000)))
		down, _ = io.Copy(io.Discard, r)
	})
	streams.Go(func() {
		w := pace.Writer(ctx, pace.InClass(line, 1), io.Discard)
		up, _ = io.Copy(w, strings.NewReader(strings.Repeat("y", 24_000)))
	})
	streams.Wait()
	fmt.Println(down, "down and", up, "up after", reached(start, 400*time.Millisecond))
	// Output: 60000 down and 24000 up after 400ms
}

// Calls are limited by key: each host gets at most ten a second, and the hosts do not wait for one another.
func ExampleDo() {
	perHost, err := weir.NewKeyed[string](weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fetch := func(ctx context.Context, host string) (string, error) {
		return pace.Do(ctx, perHost.For(host), func(context.Context) (string, error) {
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

// A channel at 25/s with a burst of 2. The context ends the goroutine of Chan if
// the consumer stops early.
func ExampleChan() {
	lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(25), Burst: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	jobs := make(chan string, 3)
	for _, job := range []string{"a", "b", "c"} {
		jobs <- job
	}
	close(jobs)
	start := time.Now()
	paced, refused := pace.Chan(ctx, lim, jobs)
	for job := range paced {
		fmt.Println(job)
	}
	fmt.Println("all after", reached(start, 40*time.Millisecond), refused())
	// Output:
	// a
	// b
	// c
	// all after 40ms <nil>
}

// Pairs are paced like values: here the index and the item of a slice.
func ExampleSeq2() {
	lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(25), Burst: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Now()
	paced, refused := pace.Seq2(context.Background(), lim, slices.All([]string{"a", "b", "c"}))
	for i, item := range paced {
		fmt.Println(i, item)
	}
	fmt.Println("all after", reached(start, 40*time.Millisecond), refused())
	// Output:
	// 0 a
	// 1 b
	// 2 c
	// all after 40ms <nil>
}

// An upload at 50 KB/s: 1 KB at once and 2 KB more within 40 ms.
func ExampleWriter() {
	lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(50_000), Burst: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Now()
	n, err := io.Copy(pace.Writer(context.Background(), lim, io.Discard), strings.NewReader(strings.Repeat("x", 3000)))
	fmt.Println(n, "bytes after", reached(start, 40*time.Millisecond), err)
	// Output: 3000 bytes after 40ms <nil>
}

// Interactive calls and batch calls share one limit. While both kinds wait,
// interactive calls get three turns of four.
func ExampleInClass() {
	lim, err := weir.NewWith(weir.TokenBucket{Rate: weir.PerSecond(100), Burst: 1}, weir.Options{Weights: []int64{3, 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := func(context.Context) (string, error) { return "done", nil }
	for class, name := range []string{"interactive", "batch"} {
		answer, err := pace.Do(context.Background(), pace.InClass(lim, class), call)
		fmt.Println(name, answer, err)
	}
	// Output:
	// interactive done <nil>
	// batch done <nil>
}
