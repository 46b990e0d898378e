package pace_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/pace"
)

// or returns a request with others in its place, one after the other.
func or(q weir.Request, others ...weir.Request) weir.Request {
	if len(others) > 0 {
		instead := or(others[0], others[1:]...)
		q.Otherwise = &instead
	}
	return q
}

func replacing(t *testing.T, engine weir.Engine) weir.Engine {
	t.Helper()
	e, err := layer.Otherwise(engine)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Each of ten callers goes when the floor or the pool has a unit, whichever is first, and in order.
func TestWaitingCallersGoWhenTheFloorOrThePoolAdmitsThem(t *testing.T) {
	onAll(t, func(t *testing.T, engine weir.Engine, calls func() int64) {
		q := mustQueue(t, replacing(t, engine))
		floor, pool := rule(t, "floor", "6/m burst 1"), rule(t, "pool", "20/m burst 1")
		went := arrive(t.Context(), t, q, 8, func(int) []weir.Request { return []weir.Request{or(floor.For("a", 1), pool.For("all", 1))} })()
		want := []time.Duration{0, 0, 3, 6, 9, 10, 12, 15}
		for i, at := range went {
			if late := at - want[i]*time.Second; late < 0 || late > 20*time.Millisecond {
				t.Errorf("caller %d went after %v, want %v s", i, at, want[i])
			}
		}
		if n := calls(); n > 120 {
			t.Errorf("%d decisions for 8 callers, want at most 120", n)
		}
	})
}

// A caller whose pool has units does not wait behind one that has no pool.
func TestACallerWithAPoolPassesOneWithout(t *testing.T) {
	onAll(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q := mustQueue(t, replacing(t, engine))
		floor, pool := rule(t, "floor", "1/m burst 1"), rule(t, "pool", "1/s burst 1")
		requests := [][]weir.Request{{floor.For("a", 1)}, {floor.For("a", 1)}, {or(floor.For("a", 1), pool.For("all", 1))}, {or(floor.For("a", 1), pool.For("all", 1))}}
		went := arrive(t.Context(), t, q, len(requests), func(i int) []weir.Request { return requests[i] })()
		for i, want := range []time.Duration{0, 60 * time.Second, 0, time.Second} {
			if late := went[i] - want; late < 0 || late > time.Second {
				t.Errorf("caller %d went after %v, want %v or little more", i, went[i], want)
			}
		}
	})
}

func TestWhatAWaitingCallerTookGoesBackToWhoPaid(t *testing.T) {
	onAll(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		over := replacing(t, engine)
		floor, pool := rule(t, "floor", "1/h and concurrency 1 lease 1h"), rule(t, "pool", "5/h and concurrency 5 lease 1h")
		q, err := pace.NewQueue(over, pace.QueueOptions{Observe: func(w pace.Waited) {
			if w.Requests[0].Key == "panics" && w.Requests[0].Otherwise != nil {
				panic("a bug of the program")
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		left := func(want int64, when string) {
			t.Helper()
			if d, err := over.Peek(t.Context(), pool.For("all", 0)); err != nil || d.Remaining != want {
				t.Errorf("%s: %d of the pool are left (%v), want %d", when, d.Remaining, err, want)
			}
		}
		held := mustAcquire(t, q, floor.For("a", 1))
		paid := mustAcquire(t, q, or(floor.For("a", 1), pool.For("all", 2)))
		if got := weir.Kit.TakeOf(paid.Reservation).Requests; !slices.Equal(got, []weir.Request{pool.For("all", 2)}) {
			t.Errorf("the reservation holds %+v, want 2 of the pool", got)
		}
		left(3, "acquired")
		if err := paid.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		left(5, "cancelled")
		_ = mustAcquire(t, q, floor.For("panics", 1))
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the observer did not panic")
				}
			}()
			_, _ = q.Wait(t.Context(), or(floor.For("panics", 1), pool.For("all", 2)))
		}()
		if err := q.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		left(5, "abandoned")
		if err := held.Done(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A slot of the pool that comes back in this process lets a caller go at once.
func TestAReleasedSlotOfAPoolIsUsedAtOnce(t *testing.T) {
	onAll(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q := mustQueue(t, replacing(t, engine))
		floor, pool := rule(t, "floor", "concurrency 1 lease 1h"), rule(t, "pool", "concurrency 1 lease 1h")
		request := or(floor.For("a", 1), pool.For("all", 1))
		mustAcquire(t, q, request)
		second := mustAcquire(t, q, request)
		began, done := time.Now(), make(chan time.Duration, 1)
		go func() {
			mustAcquire(t, q, or(floor.For("a", 1), pool.For("all", 1)))
			done <- time.Since(began)
		}()
		time.Sleep(5 * time.Second)
		if err := second.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := <-done; took < 5*time.Second || took > 6100*time.Millisecond {
			t.Errorf("the third caller went after %v, want about 5 s", took)
		}
	})
}

func TestACostIsRefusedThatNeitherTheFloorNorThePoolCanAdmit(t *testing.T) {
	onAll(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q := mustQueue(t, replacing(t, engine))
		floor, pool := rule(t, "floor", "5/m"), rule(t, "pool", "10/m")
		if d, err := q.Wait(t.Context(), or(floor.For("a", 7), pool.For("all", 7))); err != nil || d.Rule != "pool" {
			t.Errorf("got %+v and %v, want 7 of the pool", d, err)
		}
		var never *weir.CostError
		if _, err := q.Wait(t.Context(), or(floor.For("a", 11), pool.For("all", 11))); !errors.As(err, &never) || never.Capacity != 5 {
			t.Errorf("got %v, want a *weir.CostError with the capacity of the floor", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var late *weir.WaitError
		if _, err := q.Wait(ctx, or(floor.For("a", 6), pool.For("all", 10))); !errors.As(err, &late) || late.Need != 42*time.Second {
			t.Errorf("got %v, want a *weir.WaitError that needs 42 s", err)
		}
		circle := floor.For("a", 1)
		circle.Otherwise = &circle
		var bad *weir.RequestError
		for range 6 { // the first are admitted
			if _, err := q.Wait(t.Context(), circle); !errors.As(err, &bad) || bad.Field != "otherwise" {
				t.Errorf("got %v, want a *weir.RequestError about otherwise", err)
			}
		}
	})
}

// Rules that are read again for each question are the same as before, though each time they are new requests.
func TestACallerWhoseChainIsResolvedAnewKeepsItsPlace(t *testing.T) {
	onAll(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		floor, pool := rule(t, "floor", "6/m burst 1"), rule(t, "pool", "20/m burst 1")
		q, err := pace.NewQueue(replacing(t, engine), pace.QueueOptions{Resolve: func(r weir.Request) weir.Request {
			return or(r, pool.For("all", r.Cost))
		}})
		if err != nil {
			t.Fatal(err)
		}
		went := arrive(t.Context(), t, q, 4, func(int) []weir.Request { return []weir.Request{floor.For("a", 1)} })
		time.Sleep(time.Second)
		q.Changed()
		for i, at := range went() {
			want := []time.Duration{0, 0, 3 * time.Second, 6 * time.Second}[i]
			if late := at - want; late < 0 || late > 20*time.Millisecond {
				t.Errorf("caller %d went after %v, want %v", i, at, want)
			}
		}
	})
}
