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
	ctx, cancel := context.WithTimeout(context.Background(), must(time.ParseDuration(os.Args[3])))
	defer cancel()
	queue := must(pace.NewQueue(must(redislimit.Open(os.Args[1], redislimit.Options{})), pace.QueueOptions{}))
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
				if answer, err := http.Get(os.Args[2]); err == nil {
					_ = answer.Body.Close()
					made.Add(1)
				}
				_ = turn.Done(ctx) // the slot returns also after ctx has ended
			}
		})
	}
	callers.Wait()
	fmt.Println(made.Load())
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
