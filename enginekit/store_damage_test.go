package enginekit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/pace"
)

// kinds are rules of all kinds of limits, with one name, so that they share rows.
var kinds = []weir.Limit{
	weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 5}, weir.LeakyBucket{Rate: weir.PerSecond(10), Queue: 4}, weir.FixedWindow{Rate: weir.PerMinute(5)},
	weir.SlidingWindow{Rate: weir.PerMinute(5)}, weir.SlidingLog{Rate: weir.PerMinute(5)}, weir.RateGate{Rate: weir.PerMinute(5)},
	weir.Cycle{Rate: weir.PerMinute(5)}, weir.Concurrency{Slots: 5, Lease: time.Second},
}

// A row of any bytes, as after an edit by hand, harms nothing: every call has an answer, or an error that counted nothing, and
// after a reset the key is new.
func FuzzDamagedRows(f *testing.F) {
	bubble := func() int64 { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano() } // when synctest begins
	store := newMemoryStore(bubble)
	e := enginekit.NewStore(store, enginekit.StoreOptions{Clock: bubble})
	for i, limit := range kinds {
		rule, err := weir.NewRule("r", limit)
		if err != nil {
			f.Fatal(err)
		}
		for _, call := range []weir.Call{{Op: weir.OpTake, Identity: "id", Lease: 7}, {Op: weir.OpTake, Lease: 8}} {
			call.Requests = []weir.Request{rule.For("k", 1)}
			if _, err := e.Do(f.Context(), call); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(store.rows["r\x00k"].State, uint8(i))
	}
	f.Fuzz(func(t *testing.T, row []byte, kind uint8) {
		synctest.Test(t, func(t *testing.T) { testDamagedRow(t, row, mustRule(t, "r", kinds[int(kind)%len(kinds)])) })
	})
}

func testDamagedRow(t *testing.T, row []byte, rule *weir.Rule) {
	store := newMemoryStore(wallClock)
	write := func() { store.rows["r\x00k"] = enginekit.Row{Version: 1, State: row} }
	q := rule.For("k", 2)
	for _, op := range []weir.Op{weir.OpTake, weir.OpTakeUpTo, weir.OpPeek, weir.OpRecord, weir.OpReturn, weir.OpReserve, weir.OpReserveAhead} {
		write()
		call := weir.Call{Op: op, Requests: []weir.Request{q}, Lease: 7, Longest: time.Minute}
		if op == weir.OpTakeUpTo {
			call.Most = 2
		}
		if op == weir.OpTake || op == weir.OpRecord {
			call.Identity = "id"
		}
		a, err := enginekit.NewStore(store, enginekit.StoreOptions{}).Do(t.Context(), call)
		if d := a.Decision; err == nil && (d.RetryAfter < 0 || d.ResetAfter < 0 || d.Delay < 0 || d.Remaining < 0 || d.Remaining > 5) {
			t.Errorf("%v: %+v", op, d)
		}
		if a.Reservation != nil {
			_ = a.Reservation.Cancel(t.Context())
		}
		if failed, ok := errors.AsType[*enginekit.StoreError](err); ok && failed.Counted != weir.CountedNo {
			t.Errorf("%v: %v, want an error that counted nothing", op, err)
		}
	}
	write()
	e := enginekit.NewStore(store, enginekit.StoreOptions{})
	queue, err := pace.NewQueue(e, pace.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if held, err := queue.Acquire(ctx, q); err == nil {
		_ = held.Done(ctx)
	}
	if err := e.Reset(t.Context(), q); err != nil {
		t.Errorf("reset: %v", err)
	}
	if d, err := e.Peek(t.Context(), rule.For("k", 0)); err != nil || d.Remaining != 5 {
		t.Errorf("after a reset: %+v and %v, want 5 left", d, err)
	}
}
