package layer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// A block of a first window ends with the window, which began with the first unit of the key.
func TestAStockEndsWithTheWindowThatItsKeyBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=first window 1000/1s")
		p := prefetched(t, r)
		time.Sleep(300 * time.Millisecond)
		takes(t, p, 1, rule, "k")
		time.Sleep(900 * time.Millisecond)
		takes(t, p, 24, rule, "k")
		if out := p.Stats().Out; out < 10 {
			t.Fatalf("%d are taken ahead, want some", out)
		}
		time.Sleep(100*time.Millisecond - 1)
		before := r.calls.Load()
		if takes(t, p, 1, rule, "k"); r.calls.Load() != before {
			t.Error("a take in the window was asked of the engine")
		}
		time.Sleep(time.Nanosecond)
		if takes(t, p, 1, rule, "k"); r.calls.Load() == before {
			t.Error("a take in the next window was decided from the stock of the last one")
		}
		time.Sleep(10 * time.Millisecond)
		if s := p.Stats(); s.Returned != 0 || s.Lost == 0 {
			t.Errorf("got %+v, want nothing given back into another window", s)
		}
	})
}

// Units of a first window that come back during an outage go to the engine with the instant of their take. Those without one may
// be of a window that has ended, so they stay spent.
func TestUnitsOfAFirstWindowComeBackByTheirInstant(t *testing.T) {
	for _, tt := range []struct {
		outage time.Duration
		want   int64 // left of 10
	}{{30 * time.Second, 7}, {2 * time.Minute, 6}} {
		synctest.Test(t, func(t *testing.T) {
			r, rule := newRemote(), mustRule(t, "r=first window 10/1m")
			g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, Peers: 1})
			takes(t, g, 1, rule, "k")
			time.Sleep(time.Second)
			held, err := g.Reserve(t.Context(), rule.For("k", 4))
			if err != nil || !held.Decision.Allowed {
				t.Fatalf("got %v, want a reservation", err)
			}
			r.fails.Store(true)
			if err := held.Settle(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			if _, err := g.Return(t.Context(), rule.For("k", 1)); err != nil { // which the engine cannot tell from a later one's
				t.Fatal(err)
			}
			time.Sleep(tt.outage)
			r.fails.Store(false)
			spend(t, r.memory, rule, tt.outage)
			time.Sleep(5 * time.Second)
			if got := remaining(t, r.memory, rule, "k"); got != tt.want {
				t.Errorf("after %v: %d of 10 are left, want %d", tt.outage, got, tt.want)
			}
		})
	}
}

// spend takes 4 units from another process once the window has ended.
func spend(t *testing.T, e weir.Engine, rule *weir.Rule, after time.Duration) {
	if after >= time.Minute {
		takes(t, e, 4, rule, "k")
	}
}
