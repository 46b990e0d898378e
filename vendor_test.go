package weir_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// Three groups of ten callers, as three processes are, ask without a pause for 35
// seconds. The instants at which their requests begin are what the vendor counts.
func TestVendorsTermsAreKeptByThreeGroupsOfCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, rate, quota, err := vendorsTerms()
		if err != nil {
			t.Fatal(err)
		}
		v := &vendor{weir.NewMemory(weir.MemoryOptions{}), slots, rate, quota}
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
		defer cancel()
		var seen vendorsLog
		var groups sync.WaitGroup
		for range 3 * 10 {
			groups.Go(func() {
				for ctx.Err() == nil {
					if err := v.call(ctx, seen.request); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
						return
					}
				}
			})
		}
		groups.Wait()
		if most := seen.mostIn(10 * time.Second); most != 100 {
			t.Errorf("%d requests in a stretch of 10 s, want 100", most)
		}
		if len(seen.starts) != 400 || seen.most != 8 {
			t.Errorf("%d requests in 35 s, %d at once; want 400 and 8", len(seen.starts), seen.most)
		}
		if d, err := v.engine.Peek(t.Context(), slots.For("vendor", 0)); err != nil || d.Remaining != 8 {
			t.Errorf("%d slots are free at the end, %v; want 8", d.Remaining, err)
		}
	})
}

// Cancel of one rule of all three limits gives back the rate and the quota too:
// the work was not done.
func TestCancelOfOneRuleGivesTheRateBackWithTheSlot(t *testing.T) {
	rule, err := weir.ParseRule("vendor=concurrency 8 lease 1m and sliding log 100/10s and fixed window 5000/d")
	if err != nil {
		t.Fatal(err)
	}
	engine := weir.NewMemory(weir.MemoryOptions{Clock: still})
	admitted := 0
	for range 200 {
		r, err := engine.Reserve(t.Context(), rule.For("vendor", 1))
		if err != nil {
			t.Fatal(err)
		}
		if r.Decision.Allowed {
			admitted++
		}
		if err := r.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if admitted != 200 {
		t.Errorf("%d of 200 requests at one instant were admitted, want all, as each was given back", admitted)
	}
}

// vendorsLog is what a vendor logs of requests that take 50 ms.
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

// mostIn is the most requests that began within a stretch of time.
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
