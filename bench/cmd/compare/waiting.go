package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/measure"
)

const (
	lineWaiters = 10_000
	linePerSec  = 1_000_000 // release rate of the line

	released = "waiting callers released at 1e6/s"
)

// releaseLine queues callers at a limit that admits nothing, then raises the rate and times their release. Neighbours that
// ran out of order also depend on the scheduler.
func releaseLine(context.Context, *measure.Options) (measure.Figures, error) {
	l, err := weir.New(weir.TokenBucket{Rate: weir.PerDay(1), Burst: 1})
	if err != nil || !l.Allow() {
		return nil, fmt.Errorf("the first call was refused: %w", err)
	}
	var gone atomic.Int64
	order := make([]int64, lineWaiters)
	failures := make([]error, lineWaiters)
	var callers sync.WaitGroup
	for i := range lineWaiters {
		callers.Go(func() {
			failures[i] = l.Wait(context.Background())
			order[i] = gone.Add(1)
		})
		for l.WaitStats().Waiting <= i { // so that the order of arrival is known
			runtime.Gosched()
		}
	}
	start := time.Now()
	if err := l.SetLimit(weir.TokenBucket{Rate: weir.PerSecond(linePerSec), Burst: 1}); err != nil {
		return nil, err
	}
	callers.Wait()
	f := measure.Figures{"callers/s": lineWaiters / time.Since(start).Seconds(), "out of order": 0}
	for i, err := range failures {
		if err != nil {
			return nil, fmt.Errorf("caller %d: %w", i, err)
		}
		if i > 0 && order[i] < order[i-1] {
			f["out of order"]++
		}
	}
	return f, nil
}
