package pace_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/internal/waittest"
	"github.com/weirflow/weir/pace"
)

// stranger is an engine that misbehaves once, when it is told to.
type stranger struct {
	*remote
	next atomic.Pointer[func() (weir.Decision, error)]
}

func newStranger(t *testing.T) *stranger {
	s := &stranger{remote: newRemote(t)}
	s.around = func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		if act := s.next.Swap(nil); act != nil && c.Op == weir.OpEach {
			d, err := (*act)()
			if err == nil {
				rest := weir.Batch{Calls: c.Each.Calls[1:], Results: c.Each.Results[1:]}
				_, err = next(ctx, weir.Call{Op: weir.OpEach, Each: &rest})
			}
			c.Each.Results[0].Decision = d
			return weir.Answer{}, err
		}
		return next(ctx, c)
	}
	return s
}

func TestAPanicOrNonsenseOfTheEngineEndsOneWaitOnly(t *testing.T) {
	for name, act := range map[string]func() (weir.Decision, error){
		"a panic":                        func() (weir.Decision, error) { panic("out of order") },
		"a refusal without a RetryAfter": func() (weir.Decision, error) { return weir.Decision{}, nil },
		"a negative RetryAfter":          func() (weir.Decision, error) { return weir.Decision{RetryAfter: -time.Second}, nil },
		"an error":                       func() (weir.Decision, error) { return weir.Decision{}, errBroken },
	} {
		for _, acquires := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { misbehaves(t, act, acquires) })
			})
		}
	}
}

func misbehaves(t *testing.T, act func() (weir.Decision, error), acquires bool) {
	engine := newStranger(t)
	q, vendor := mustQueue(t, engine), rule(t, "vendor", "token bucket 1/s burst 1")
	wait := func() error { _, err := q.Wait(t.Context(), vendor.For("k", 1)); return err }
	if acquires {
		wait = func() error { _, err := q.Acquire(t.Context(), vendor.For("k", 1)); return err }
	}
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	start, before := time.Now(), engine.calls.Load()
	var failed atomic.Int64
	var callers sync.WaitGroup
	for range 5 {
		callers.Go(func() {
			if wait() != nil {
				failed.Add(1)
			}
		})
		synctest.Wait()
	}
	engine.next.Store(&act)
	callers.Wait()
	if n := failed.Load(); n != 1 || q.Waiting() != 0 {
		t.Errorf("%d of 5 callers failed and %d wait, want one and none", n, q.Waiting())
	}
	if took := time.Since(start); took > 6*time.Second {
		t.Errorf("the others went after %v, want 5s", took)
	}
	if calls := engine.calls.Load() - before; calls > 40 {
		t.Errorf("%d calls for 5 callers", calls)
	}
}

// newCutOff returns an engine that cannot be reached until an instant.
func newCutOff(t *testing.T, until time.Time) *remote {
	r := newRemote(t)
	r.around = func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		if time.Now().Before(until) {
			r.calls.Add(1)
			return weir.Answer{}, waittest.Away{}
		}
		return next(ctx, c)
	}
	return r
}

func TestCallersKeepTheirPlacesThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newCutOff(t, time.Now().Add(20*time.Second))
		q, vendor := mustQueue(t, engine), rule(t, "vendor", "token bucket 10/s burst 1")
		start := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var order []int
		var mu sync.Mutex
		var callers sync.WaitGroup
		for i := range 6 {
			ctx := t.Context()
			if i == 2 {
				ctx = short
			}
			callers.Go(func() {
				_, err := q.Wait(ctx, vendor.For("k", 1))
				if (err != nil) != (i == 2) {
					t.Errorf("caller %d: %v after %v", i, err, time.Since(start))
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			})
			synctest.Wait()
		}
		callers.Wait()
		if want := []int{2, 0, 1, 3, 4, 5}; len(order) != 6 || order[0] != want[0] || order[1] != want[1] || order[5] != want[5] {
			t.Errorf("callers ended in the order %v, want %v", order, want)
		}
		if took := time.Since(start); took > 22*time.Second {
			t.Errorf("the last caller went after %v, want a second or two after the outage of 20s", took)
		}
		if calls := engine.calls.Load(); calls > 60 {
			t.Errorf("%d calls during an outage of 20s", calls)
		}
	})
}

// Callers keep their places when answers are lost. The units of a lost answer
// stay spent, so the queue asks for one caller at a time until it has an answer.
func TestCallersKeepTheirPlacesWhenAnswersAreLost(t *testing.T) {
	for _, limits := range []string{"fixed window 100/1m", "sliding log 100/1m", "token bucket 100/1m burst 100"} {
		synctest.Test(t, func(t *testing.T) {
			const callers, losses = 20, 8
			engine, left := newRemote(t), losses+1
			engine.around = func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
				a, err := next(ctx, c)
				if left--; left >= 0 && left < losses && err == nil { // the first of all has its answer
					return weir.Answer{}, waittest.Lost{Err: errors.New("the answer is lost")}
				}
				return a, err
			}
			q, vendor := mustQueue(t, engine), rule(t, "vendor", limits)
			release := make(chan struct{})
			engine.around = held(engine.around, release)
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					if _, err := q.Wait(t.Context(), vendor.For("k", 1)); err != nil {
						t.Errorf("%s: %v", limits, err)
					}
				})
				synctest.Wait()
			}
			close(release)
			all.Wait()
			spent := int64(callers + (callers - 1) + losses - 1) // the first lost answer was for all that waited
			if d, err := engine.Peek(t.Context(), vendor.For("k", 0)); err != nil || d.Remaining < 100-spent {
				t.Errorf("%s: %d of 100 units left (%v), want %d at least", limits, d.Remaining, err, 100-spent)
			}
		})
	}
}

// held holds the first call until it is released.
func held(around func(context.Context, weir.Call, weir.Next) (weir.Answer, error), release chan struct{}) func(context.Context, weir.Call, weir.Next) (weir.Answer, error) {
	return func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		<-release
		return around(ctx, c, next)
	}
}

func TestAPanicOfObserveLosesNoSlot(t *testing.T) {
	for _, server := range []weir.Engine{mustMemory(t), newRemote(t), newServer(t).Connect(waittest.Network{})} {
		panics := true
		q, err := pace.NewQueue(layertest.Around(server), pace.QueueOptions{Observe: func(pace.Waited) {
			if panics {
				panic("observe")
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		slots := rule(t, "slots", "concurrency 1 lease 1h")
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic of Observe did not reach the caller")
				}
			}()
			_, _ = q.Acquire(t.Context(), slots.For("k", 1))
		}()
		panics = false
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if _, err := q.Acquire(ctx, slots.For("k", 1)); err != nil {
			t.Errorf("%T: after a panic of Observe the slot is lost: %v", server, err)
		}
		cancel()
	}
}

// A caller that leaves a line gives back only what it took.
func TestACallerThatLeavesFreesNoSlotOfAnother(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q, slots := mustQueue(t, engine), rule(t, "slots", "concurrency 1")
		if d, err := engine.Take(t.Context(), slots.For("k", 1)); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		for _, wait := range []func(ctx context.Context) error{
			func(ctx context.Context) error { _, err := q.Wait(ctx, slots.For("k", 1)); return err },
			func(ctx context.Context) error { _, err := q.Acquire(ctx, slots.For("k", 1)); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if err := wait(ctx); !errors.Is(err, context.DeadlineExceeded) || weir.WasCounted(err) != weir.CountedNo {
				t.Errorf("got %v (counted: %v), want the end of the context, and that nothing was counted", err, weir.WasCounted(err))
			}
			cancel()
			synctest.Wait()
			if d, err := engine.Peek(t.Context(), slots.For("k", 1)); err != nil || d.Allowed {
				t.Errorf("the slot of another caller is free: %+v, %v", d, err)
			}
		}
	})
}

// A key whose decision fails, as on a shard that is away, holds up no callers of another one, also if both travel together.
func TestAKeyThatCannotBeReachedHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, gone := newRemote(t), atomic.Bool{}
		engine.around = func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
			a, err := next(ctx, c)
			if c.Op == weir.OpEach && gone.Load() {
				for i, call := range c.Each.Calls {
					if call.Requests[0].Key == "away" {
						c.Each.Results[i] = weir.Result{Err: waittest.Away{}}
					}
				}
			}
			return a, err
		}
		q, slots := mustQueue(t, engine), rule(t, "slots", "concurrency 1 lease 1h")
		held, _ := engine.Reserve(t.Context(), slots.For("k", 1))
		other, _ := engine.Reserve(t.Context(), slots.For("away", 1))
		defer weir.Kit.HandOver(other)
		ctx, stop := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		callers.Go(func() { _, _ = q.Acquire(ctx, slots.For("away", 1)) })
		went := make(chan error)
		go func() { _, err := q.Acquire(ctx, slots.For("k", 1)); went <- err }()
		time.Sleep(time.Second)
		gone.Store(true)
		time.Sleep(10 * time.Second)
		released := time.Now()
		if err := held.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-went; err != nil || time.Since(released) > 1100*time.Millisecond {
			t.Errorf("the caller of the other key: %v after %v, want its slot within a second", err, time.Since(released))
		}
		stop()
		callers.Wait()
	})
}
