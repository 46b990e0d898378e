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

// Three groups of ten callers, each with a queue like a process of its own, work for 35 seconds. The vendor counts
// the instants at which their requests begin.
func TestVendorsTermsAreKeptByThreeGroupsOfCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, rate, quota, err := vendorsTerms()
		if err != nil {
			t.Fatal(err)
		}
		engine := weir.NewMemory(weir.MemoryOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
		defer cancel()
		var seen vendorsLog
		var groups sync.WaitGroup
		for range 3 {
			queue, err := pace.NewQueue(layertest.Around(engine), pace.QueueOptions{})
			if err != nil {
				t.Fatal(err)
			}
			v := &vendor{queue, slots, rate, quota}
			for range 10 {
				groups.Go(func() {
					for {
						err := v.call(ctx, seen.request)
						if errors.Is(err, context.DeadlineExceeded) {
							return
						}
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		groups.Wait()
		if most := seen.mostIn(10 * time.Second); most != 100 {
			t.Errorf("%d requests in a stretch of 10 s, want 100", most)
		}
		if len(seen.starts) != 400 || seen.most != 8 {
			t.Errorf("%d requests in 35 s, %d at once; want 400 and 8", len(seen.starts), seen.most)
		}
		if d, err := engine.Peek(t.Context(), slots.For("vendor", 0)); err != nil || d.Remaining != 8 {
			t.Errorf("%d slots are free at the end, %v; want 8", d.Remaining, err)
		}
	})
}

// vendorsLog is a vendor's log of requests that take 50 ms each.
type vendorsLog struct {
	mu            sync.Mutex
	starts        []time.Time
	running, most int
}

func (l *vendorsLog) request(context.Context) error {
	l.mu.Lock()
	l.starts = append(l.starts, time.Now())
	l.running++
	l.most = max(l.most, l.running)
	l.mu.Unlock()
	time.Sleep(50 * time.Millisecond)
	l.mu.Lock()
	l.running--
	l.mu.Unlock()
	return nil
}

// mostIn returns the most requests that began within an interval.
func (l *vendorsLog) mostIn(stretch time.Duration) (most int) {
	first := 0
	for i, at := range l.starts {
		for at.Sub(l.starts[first]) >= stretch {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
