package redislimit_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// Undoing a take restores the earlier state, whatever happened in between.
func TestWhatIsUndoneWasNeverThere(t *testing.T) {
	server := redistest.Start(t)
	engine := newEngine(t, dial(t, server), redislimit.Options{})
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.Per(90, 300*24*time.Hour)}, weir.LeakyBucket{Rate: weir.Per(90, 300*24*time.Hour), Queue: 89},
		weir.FixedWindow{Rate: weir.Per(90, 300*24*time.Hour)}, weir.SlidingWindow{Rate: weir.Per(90, 300*24*time.Hour)},
		weir.SlidingLog{Rate: weir.Per(90, 300*24*time.Hour)}, weir.RateGate{Rate: weir.Per(90, 300*24*time.Hour)},
		weir.Cycle{Rate: weir.Per(90, 300*24*time.Hour)}, weir.Concurrency{Slots: 90, Lease: 300 * 24 * time.Hour},
	} {
		rule := newRule(t, limit.String(), limit)
		take := func(cost int64, want int64) {
			t.Helper()
			if d, err := engine.Take(t.Context(), rule.For("k", cost)); err != nil || !d.Allowed || d.Remaining != want {
				t.Errorf("%s: Take(%d): got %+v and %v, want it allowed and %d remaining", limit, cost, d, err, want)
			}
		}
		take(10, 80)
		late(t, server, engine, rule.For("k", 7))
		take(20, 60)
	}
}

// late takes q for a caller that leaves before the answer comes. It returns when the take is undone.
func late(t *testing.T, server *redistest.Server, engine *redislimit.Engine, q weir.Request) {
	t.Helper()
	before := engine.Stats()
	server.Stop()
	if err := redislimit.AskAndLeave(t, engine, func(ctx context.Context) error { _, err := engine.Take(ctx, q); return err }); err == nil {
		t.Error("Take while the server hangs: no error")
	}
	server.Cont()
	eventually(t, "the late take is undone", func() string {
		if s := engine.Stats(); s.GivenBack == before.GivenBack || s.Calls < before.Calls+2 || s.Undoing > 0 {
			return "not yet"
		}
		return ""
	})
}

// A window may end between a take and its undoing. The next window then has nothing to give back, except the weight
// of the previous one.
func TestAnUndoingAfterTheWindowTouchesNoOther(t *testing.T) {
	server := redistest.Start(t)
	client := dial(t, server)
	const hour = int64(3600 * 1e6)
	for _, tt := range []struct {
		limit     weir.Limit
		remaining int64 // a quarter into the window after, of 90, after takes of 40, 20 (undone) and 10
	}{
		{weir.FixedWindow{Rate: weir.PerHour(90)}, 80},
		{weir.Cycle{Rate: weir.PerHour(90), Origin: time.Minute}, 80},
		{weir.SlidingWindow{Rate: weir.PerHour(90)}, 90 - 10 - 30},
	} {
		var now atomic.Int64 // us
		now.Store(400_000*hour + hour/4)
		engine := newEngine(t, client, redislimit.Options{Clock: func() int64 { return now.Load() * 1000 }})
		rule := newRule(t, tt.limit.String(), tt.limit)
		if d, err := engine.Take(t.Context(), rule.For("k", 40)); err != nil || !d.Allowed {
			t.Fatalf("%s: Take: %+v, %v", rule, d, err)
		}
		server.Stop()
		take20 := func(ctx context.Context) error { _, err := engine.Take(ctx, rule.For("k", 20)); return err }
		if err := redislimit.AskAndLeave(t, engine, take20); err == nil {
			t.Errorf("%s: Take while the server hangs: no error", rule)
		}
		now.Add(hour)
		var taken sync.WaitGroup
		taken.Go(func() { admitted(t, engine, context.Background(), rule.For("k", 10)) })
		server.Cont()
		taken.Wait()
		eventually(t, "the late take is undone", func() string {
			d, err := engine.Peek(t.Context(), rule.For("k", 0))
			if err != nil || engine.Stats().GivenBack != 1 || d.Remaining != tt.remaining {
				return fmt.Sprintf("%s: got %d remaining (%v), want %d", rule, d.Remaining, err, tt.remaining)
			}
			return ""
		})
	}
}
