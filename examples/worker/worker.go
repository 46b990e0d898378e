// Command worker asks a vendor as often as its terms permit, together with all workers on the same Redis:
//
//	worker redis://127.0.0.1:6379 http://vendor.example/ 30s
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
)

// terms are five requests at once, 100 in 10 seconds with a margin of 200 ms for the way, and 10,000 a day.
var terms = []string{"slots=concurrency 5 lease 30s", "rate=sliding log 100/10200ms", "quota=fixed window 10000/d"}

func main() {
	if len(os.Args) != 4 {
		exit(2, fmt.Errorf("%d arguments, want 3; usage: worker REDIS VENDOR TIME, for example worker redis://127.0.0.1:6379 http://vendor.example/ 30s", len(os.Args)-1))
	}
	lifetime, err := time.ParseDuration(os.Args[3])
	if err != nil {
		exit(2, err)
	}
	engine, err := redislimit.Open(os.Args[1], redislimit.Options{})
	if err != nil {
		exit(1, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	defer cancel()
	fmt.Println(work(ctx, must(pace.NewQueue(engine, pace.QueueOptions{})), os.Args[2]))
}

func exit(code int, err error) {
	fmt.Fprintln(os.Stderr, "worker:", err)
	os.Exit(code)
}

// work asks the vendor until ctx ends, with ten callers, and returns the number of requests.
func work(ctx context.Context, queue *pace.Queue, vendor string) int64 {
	var requests []weir.Request
	for _, text := range terms {
		requests = append(requests, must(weir.ParseRule(text)).For("vendor", 1))
	}
	var made atomic.Int64
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() {
			for {
				turn, err := queue.Acquire(ctx, requests...)
				if err != nil {
					return // the time is over
				}
				if answer, err := http.Get(vendor); err == nil {
					_ = answer.Body.Close()
					made.Add(1)
				}
				_ = turn.Done(ctx) // the slot returns also after ctx has ended
			}
		})
	}
	callers.Wait()
	return made.Load()
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
