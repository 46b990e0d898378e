package pace_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/pace"
)

func TestStatsOfAQueueCountItsCallersByRuleAndReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []pace.Waited
		q, err := pace.NewQueue(layertest.Around(mustMemory(t)), pace.QueueOptions{Queue: 2, Observe: func(w pace.Waited) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, w)
		}})
		if err != nil {
			t.Fatal(err)
		}
		host, total := rule(t, "host", "token bucket 1/10s burst 1"), rule(t, "total", "token bucket 1/s burst 5")
		ctx, leave := context.WithCancel(t.Context())
		late, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		wait := func(ctx context.Context, requests ...weir.Request) { _, _ = q.Wait(ctx, requests...) }
		wait(t.Context(), host.For("a", 1), total.For("all", 1))
		go wait(ctx, host.For("a", 1), total.For("all", 1))
		synctest.Wait()
		time.Sleep(2 * time.Second)
		wait(late, host.For("a", 1))
		wait(t.Context(), total.For("all", 9))
		go wait(t.Context(), host.For("a", 1))
		synctest.Wait()
		wait(t.Context(), host.For("a", 1)) // the queue is full
		time.Sleep(time.Second)

		s := q.Stats()
		want := pace.QueueCounts{Waiting: 2, Oldest: 3 * time.Second, Granted: 1, Late: 1, Full: 1, Never: 1}
		if s.QueueCounts != want {
			t.Errorf("got %+v, want %+v", s.QueueCounts, want)
		}
		if len(s.Rules) != 2 || s.Rules[0].Rule != "host" || s.Rules[0].Waiting != 2 || s.Rules[1].Waiting != 1 || s.Rules[1].Never != 1 {
			t.Errorf("got rules %+v", s.Rules)
		}
		leave()
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if s := q.Stats(); s.Waiting != 0 || s.Oldest != 0 || s.Left != 1 || s.Granted != 2 || len(seen) != 6 {
			t.Errorf("at the end: got %+v and %d observed, want 2 granted of 6", s.QueueCounts, len(seen))
		}
		if last := seen[5]; last.Err != nil || last.Took != 8*time.Second {
			t.Errorf("the last caller: got %+v, want a wait of 8 s", last)
		}
	})
}

func TestACallerThatLeavesDuringTheDelayOfALeakyBucketHasLeft(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		var seen []error
		q, err := pace.NewQueue(layertest.Around(engine), pace.QueueOptions{Observe: func(w pace.Waited) { seen = append(seen, w.Err) }})
		if err != nil {
			t.Fatal(err)
		}
		leaky := rule(t, "leaky", "leaky bucket 1/s queue 2")
		if _, err := q.Wait(t.Context(), leaky.For("k", 1)); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		go q.Wait(ctx, leaky.For("k", 1))
		synctest.Wait()
		if s := q.Stats(); s.Waiting != 1 || s.Granted != 1 {
			t.Errorf("during the delay: %+v", s.QueueCounts)
		}
		leave()
		synctest.Wait()
		if s := q.Stats(); s.Waiting != 0 || s.Granted != 1 || s.Left != 1 || len(seen) != 2 || !errors.Is(seen[1], context.Canceled) {
			t.Errorf("afterwards: %+v, observed %v", s.QueueCounts, seen)
		}
	})
}
