package enginekit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/pace"
)

// lineStore is a store in virtual time that answers after a millisecond.
type lineStore struct{ *memoryStore }

func (s lineStore) Swap(ctx context.Context, at int64, changes []enginekit.Change) (int64, error) {
	time.Sleep(time.Millisecond)
	return s.memoryStore.Swap(ctx, at, changes)
}

func (s lineStore) Load(ctx context.Context, keys []string) ([]enginekit.Row, int64, error) {
	time.Sleep(time.Millisecond)
	return s.memoryStore.Load(ctx, keys)
}

func newLineStore() lineStore {
	return lineStore{newMemoryStore(func() int64 { return time.Now().UnixNano() })}
}

// queues returns the queues of n processes on a store.
func queues(t *testing.T, s enginekit.Store, n int) (all []*pace.Queue) {
	t.Helper()
	for range n {
		q, err := pace.NewQueue(enginekit.NewStore(s, enginekit.StoreOptions{}), pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
	}
	return all
}

func lineRule(t *testing.T, text string) *weir.Rule {
	t.Helper()
	r, err := weir.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// parade has callers come to the queues by turns, 40 ms apart, and returns the order in which they went. With a hold they
// acquire, otherwise they wait.
func parade(t *testing.T, all []*pace.Queue, callers int, hold time.Duration, requests ...weir.Request) (order []int) {
	t.Helper()
	var mu sync.Mutex
	var went sync.WaitGroup
	for i := range callers {
		went.Go(func() {
			q := all[i%len(all)]
			done := func() error { return nil }
			if hold == 0 {
				if _, err := q.Wait(t.Context(), requests...); err != nil {
					t.Error(err)
				}
			} else if a, err := q.Acquire(t.Context(), requests...); err != nil {
				t.Error(err)
			} else {
				done = func() error { return a.Done(t.Context()) }
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			time.Sleep(hold)
			if err := done(); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(40 * time.Millisecond)
	}
	went.Wait()
	return order
}

func TestCallersOfSeveralProcessesOnAStoreGoInOrderOfArrival(t *testing.T) {
	slots, rate := lineRule(t, "s=concurrency 1 lease 30s"), lineRule(t, "r=token bucket 5/s burst 1")
	free := lineRule(t, "f=token bucket 1000/s burst 100")
	for name, c := range map[string]struct {
		hold     time.Duration
		requests []weir.Request
		longest  time.Duration
	}{
		"slots":            {200 * time.Millisecond, []weir.Request{slots.For("k", 1)}, 15 * 260 * time.Millisecond},
		"slots and a rate": {100 * time.Millisecond, []weir.Request{slots.For("k", 1), free.For("k", 1)}, 15 * 160 * time.Millisecond},
		"a rate":           {0, []weir.Request{rate.For("k", 1)}, 15*200*time.Millisecond + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				order := parade(t, queues(t, newLineStore(), 3), 15, c.hold, c.requests...)
				t.Logf("%v, in %v", order, time.Since(began))
				if !slices.IsSorted(order) {
					t.Errorf("callers went in the order %v", order)
				}
				if took := time.Since(began); took > c.longest {
					t.Errorf("it took %v, want at most %v", took, c.longest)
				}
			})
		})
	}
}

// A process that dies while it waits, or while it holds a slot, delays the others by a second or a lease, once.
func TestADeadProcessHoldsUpALineOnce(t *testing.T) {
	for _, text := range []string{"s=concurrency 1 lease 30s", "r=token bucket 10/s burst 1"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, rule := newLineStore(), lineRule(t, text)
				q, dead := queues(t, s, 1)[0], enginekit.NewStore(s, enginekit.StoreOptions{}).EnterLines(nil)
				hold := time.Duration(0)
				if weir.Describe(rule.Limits()[0]).Held {
					hold = time.Millisecond
					held, err := q.Acquire(t.Context(), rule.For("k", 1))
					if err != nil {
						t.Fatal(err)
					}
					caller := enginekit.LineCaller{Requests: []weir.Request{rule.For("k", 1)}, Lease: weir.NewLease(), Since: time.Now()}
					ask := &enginekit.LineAsk{Callers: []enginekit.LineCaller{caller}, Keys: []enginekit.LineKey{{Slots: rule.For("k", 1)}}}
					if err := dead.Ask(t.Context(), ask); err != nil || len(ask.Callers[0].Stands) != 1 {
						t.Fatalf("got %+v and %v, want a caller that stands", ask.Callers[0], err)
					}
					if err := held.Done(t.Context()); err != nil {
						t.Fatal(err)
					}
				} else {
					book := &enginekit.LineBook{Callers: make([]enginekit.LineCaller, 2)}
					for i := range book.Callers {
						book.Callers[i] = enginekit.LineCaller{Requests: []weir.Request{rule.For("k", 1)}, Since: time.Now()}
					}
					if err := dead.Book(t.Context(), book); err != nil || !book.Callers[0].Decision.Allowed || book.Callers[1].Decision.Allowed || book.Retry == 0 {
						t.Fatalf("got %+v and %v, want one booking and one that waits", book, err)
					}
				}
				time.Sleep(50 * time.Millisecond)
				began := time.Now()
				order := parade(t, []*pace.Queue{q}, 5, hold, rule.For("k", 1))
				if took := time.Since(began); took < 900*time.Millisecond || took > 1700*time.Millisecond {
					t.Errorf("%v went after %v, want about a second for the dead process", order, took)
				}
			})
		})
	}
}

// The oldest caller leaves, and the next one goes at once. It wants both slots while others want one each, and is not starved.
func TestACallerThatLeavesAndOneThatWantsMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, slots := queues(t, newLineStore(), 3), lineRule(t, "s=concurrency 2 lease 30s")
		held, err := all[0].Acquire(t.Context(), slots.For("k", 1))
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		went := make(chan string)
		come := func(ctx context.Context, name string, q *pace.Queue, n int64) {
			go func() {
				a, err := q.Acquire(ctx, slots.For("k", n))
				if err == nil {
					_ = a.Done(t.Context())
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				went <- name
			}()
			time.Sleep(100 * time.Millisecond)
		}
		come(ctx, "wide", all[1], 2)
		come(t.Context(), "narrow", all[2], 1)
		select {
		case name := <-went:
			t.Fatalf("%s went before the wide caller", name)
		default:
		}
		leave()
		began := time.Now()
		if got := <-went + " " + <-went; got != "wide narrow" || time.Since(began) > 100*time.Millisecond {
			t.Errorf("got %s after %v", got, time.Since(began))
		}
		come(t.Context(), "wide", all[1], 2)
		come(t.Context(), "narrow", all[2], 1)
		if err := held.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-went + " " + <-went; got != "wide narrow" {
			t.Errorf("they went in the order %s", got)
		}
	})
}

// Callers of three processes hold slots of two keys while calls of the store conflict and answers are lost. All are served,
// the slots are used, and in the end all are free.
func TestACrowdOnAFaultyStoreIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLineStore()
		s.breaks(5, 2, 2)
		slots, other := lineRule(t, "s=concurrency 4 lease 5s"), lineRule(t, "o=concurrency 3 lease 5s")
		var callers sync.WaitGroup
		served := make([]int, 4)
		var mu sync.Mutex
		busy, most := 0, 0
		end := time.Now().Add(20 * time.Second)
		for p, q := range queues(t, s, 3) {
			for i := range 6 {
				requests := []weir.Request{slots.For("k", 1)}
				name := p
				if i == 0 {
					requests, name = []weir.Request{other.For("k", 1), slots.For("k", 1)}, 3
				}
				callers.Go(func() {
					for time.Now().Before(end) {
						a, err := q.Acquire(t.Context(), requests...)
						if err != nil {
							continue
						}
						mu.Lock()
						served[name]++
						busy++
						most = max(most, busy)
						mu.Unlock()
						time.Sleep(20 * time.Millisecond)
						mu.Lock()
						busy--
						mu.Unlock()
						for a.Done(t.Context()) != nil {
							time.Sleep(time.Millisecond)
						}
					}
				})
			}
		}
		callers.Wait()
		t.Logf("served %v, at most %d at a time", served, most)
		if most > 4 || slices.Min(served) < 100 {
			t.Errorf("served %v, at most %d at a time, want at least 100 each, and 4 at a time", served, most)
		}
		s.breaks(0, 0, 0)
		time.Sleep(6 * time.Second) // the leases of lost releases
		e := enginekit.NewStore(s, enginekit.StoreOptions{})
		for _, r := range []*weir.Rule{slots, other} {
			if d, err := e.Peek(t.Context(), r.For("k", 0)); err != nil || d.Remaining != d.Limit {
				t.Errorf("in the end: %+v and %v, want all free", d, err)
			}
		}
	})
}

// A caller that needs a rate besides slots, or besides another rate, is not starved by callers of another process that book the
// rate again and again.
func TestACallerOfSeveralKeysIsServedBesideBookings(t *testing.T) {
	rate := lineRule(t, "r=token bucket 20/s burst 1")
	for _, text := range []string{"s=concurrency 1 lease 30s", "o=token bucket 30/s burst 1"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all, other := queues(t, newLineStore(), 2), lineRule(t, text)
				ctx, stop := context.WithCancel(t.Context())
				var booking sync.WaitGroup
				for range 20 {
					booking.Go(func() {
						for ctx.Err() == nil {
							_, _ = all[0].Wait(ctx, rate.For("k", 1))
						}
					})
				}
				time.Sleep(time.Second)
				for i := range 5 {
					began := time.Now()
					a, err := all[1].Acquire(t.Context(), other.For("k", 1), rate.For("k", 1))
					if err == nil {
						err = a.Done(t.Context())
					}
					if took := time.Since(began); err != nil || took > 2*time.Second {
						t.Errorf("caller %d was served after %v (%v), want 20 callers at 20/s before it at most", i, took, err)
					}
				}
				stop()
				booking.Wait()
			})
		})
	}
}

// The clock of the store is set forward by an hour and back, while callers of slots wait. They go on within seconds.
func TestCallersInLineGoOnWhenTheClockOfTheStoreIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var step atomic.Int64
		s := lineStore{newMemoryStore(func() int64 { return time.Now().UnixNano() + step.Load() })}
		slots := lineRule(t, "s=concurrency 1 lease 5s")
		go func() {
			time.Sleep(300 * time.Millisecond)
			step.Store(int64(time.Hour))
			time.Sleep(500 * time.Millisecond)
			step.Store(0)
		}()
		began := time.Now()
		order := parade(t, queues(t, s, 3), 20, 50*time.Millisecond, slots.For("k", 1))
		if took := time.Since(began); len(order) != 20 || took > 10*time.Second {
			t.Errorf("%v went in %v", order, took)
		}
	})
}

func TestALineHasABoundedNumberOfProcessesInAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, slots := enginekit.NewStore(newLineStore(), enginekit.StoreOptions{}), lineRule(t, "s=concurrency 1 lease 30s")
		if _, err := e.Do(t.Context(), weir.Call{Op: weir.OpTake, Requests: []weir.Request{slots.For("k", 1)}, Lease: 1}); err != nil {
			t.Fatal(err)
		}
		refused := 0
		for range 300 {
			ask := &enginekit.LineAsk{Callers: []enginekit.LineCaller{{Requests: []weir.Request{slots.For("k", 1)}, Lease: weir.NewLease(), Since: time.Now()}}, Keys: []enginekit.LineKey{{Slots: slots.For("k", 1)}}}
			if err := e.EnterLines(nil).Ask(t.Context(), ask); err != nil {
				t.Fatal(err)
			}
			if err := ask.Callers[0].Err; errors.Is(err, weir.ErrQueueFull) {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if refused != 300-256 {
			t.Error(fmt.Sprint(refused, " processes were refused, want 44"))
		}
	})
}
