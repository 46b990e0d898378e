package redislimit

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/pace"
)

// A caller of a queue leaves while Redis answers. The program flushes the queue and ends: nothing of the caller stays
// counted, neither a booked instant nor the units of a take.
func TestAFlushedQueueLeavesNothingOfALateAnswer(t *testing.T) {
	for _, limit := range []string{"token bucket 1/h burst 2", "sliding log 2/1h"} {
		server := redistest.Start(t)
		proxy := startProxy(t, server.Addr)
		far, near := openFor(t, "redis://"+proxy.addr+"?timeout=30s", Options{}), openFor(t, "redis://"+server.Addr, Options{})
		warmUp(t, far)
		queue, err := pace.NewQueue(far, pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		asked := mustRule(t, "r="+limit).For("k", 1)

		proxy.stall.Store(true)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := queue.Wait(ctx, asked)
			left <- err
		}()
		eventually(t, limit+": Redis has made the decision", func() error { return wantRemaining(near, asked, 1) })
		leave()
		if err := <-left; err == nil {
			t.Fatalf("%s: Wait whose answer is late: no error", limit)
		}
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := queue.Flush(short); err == nil {
			t.Errorf("%s: Flush ended before the answer came", limit)
		}
		cancel()
		proxy.stall.Store(false)
		if err := queue.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := wantRemaining(near, asked, 2); err != nil {
			t.Errorf("%s: after Flush: %v", limit, err)
		}
	}
}

func wantRemaining(engine *Engine, asked weir.Request, want int64) error {
	asked.Cost = 0
	d, err := engine.Peek(context.Background(), asked)
	if err == nil && d.Remaining != want {
		err = fmt.Errorf("%d units remain, want %d", d.Remaining, want)
	}
	return err
}
