package redislimit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/pace"
)

// silentSender is a client whose answers are all lost.
type silentSender struct{}

func (silentSender) Send(context.Context, ...string) (string, error) {
	return "", errors.New("the connection was cut")
}

// Undos that wait for their next try when the engine is closed are given up. Flush does not wait for them.
func TestCloseGivesUpUndosThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, err := NewWith(silentSender{}, Options{OneSlot: true})
		if err != nil {
			t.Fatal(err)
		}
		rule := mustRule(t, "r=fixed window 5/300d")
		first, later, _ := threeLanes(t, engine, rule)
		const takes = 3
		for range takes {
			if _, err := engine.Take(t.Context(), rule.For(first.key, 1), rule.For(later.key, 1)); weir.WasCounted(err) == weir.CountedNo {
				t.Fatalf("Take without an answer: got %v, want an error that may have counted", err)
			}
		}
		synctest.Wait()
		if now := engine.Stats(); now.Undoing != takes || now.Abandoned != 0 {
			t.Fatalf("%d takes without an answer: %d undos are in progress and %d were given up, want all in progress", takes, now.Undoing, now.Abandoned)
		}
		engine.Close()
		if err := engine.Flush(t.Context()); err != nil {
			t.Errorf("Flush after Close: %v", err)
		}
		if now := engine.Stats(); now.Undoing != 0 || now.Abandoned != takes {
			t.Errorf("after Close: %d undos are in progress and %d were given up, want all %d given up", now.Undoing, now.Abandoned, takes)
		}
	})
}

// goroutines returns the stacks of the goroutines of engines and their clients.
func goroutines() (stacks []string) {
	text := make([]byte, 8<<20)
	text = text[:runtime.Stack(text, true)]
	for stack := range strings.SplitSeq(string(text), "\n\n") {
		if (strings.Contains(stack, "weir/redislimit.(") || strings.Contains(stack, "redis/rueidis")) && !strings.Contains(stack, "testing.tRunner") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

// The server hangs during calls, renewals, waits in line and undos. Close ends all of them, though it still hangs.
func TestCloseLeavesNoGoroutineBehindThoughTheServerHangs(t *testing.T) {
	for _, options := range []Options{{}, {OneSlot: true, Lanes: 8}} {
		server := redistest.Start(t)
		engine := openFor(t, "redis://"+server.Addr, options)
		warmUp(t, engine)
		slots, bucket := mustRule(t, "s=concurrency 5 lease 600ms"), mustRule(t, "b=token bucket 1000/h")
		var held []*weir.Reservation
		for i := range 50 {
			r, err := engine.Reserve(t.Context(), slots.For(fmt.Sprint(i%10), 1))
			if err != nil || !r.Decision.Allowed {
				t.Fatalf("Reserve: %+v, %v", r, err)
			}
			held = append(held, r)
		}
		queue, err := pace.NewQueue(engine, pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var all, impatient sync.WaitGroup
		for i := range 10 {
			all.Go(func() { _, _ = queue.Acquire(context.Background(), slots.For(fmt.Sprint(i), 1)) })
		}
		server.Stop()
		for i := range 60 {
			q, other := bucket.For(fmt.Sprint(i), 1), bucket.For(fmt.Sprint("other ", i), 1)
			all.Go(func() { _, _, _ = weir.TakeUpTo(context.Background(), engine, 3, q, other) })
			impatient.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				_, _ = engine.Take(ctx, q, other)
				_ = held[i%len(held)].Done(ctx)
			})
		}
		impatient.Wait()
		if s := engine.Stats(); s.InFlight == 0 {
			t.Fatalf("nothing is in flight though the server hangs: %+v", s)
		}
		engine.Close()
		all.Wait()
		eventually(t, "no goroutine is left", func() error {
			if left := goroutines(); len(left) > 0 {
				return fmt.Errorf("%d are left, such as\n%s", len(left), left[0])
			}
			return nil
		})
		if s := engine.Stats(); s.Queued != 0 || s.InFlight != 0 || s.Undoing != 0 || s.Held != 0 {
			t.Errorf("after Close: %+v, want nothing in progress", s)
		}
		server.Cont()
	}
}
