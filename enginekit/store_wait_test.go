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

// lateStore is a store in virtual time that answers after a millisecond, and cannot be reached until an instant.
type lateStore struct {
	*memoryStore
	away time.Time
	swap func() // called once, when the next swap was made
}

var errAway = errors.New("the database is away")

func (s *lateStore) Swap(ctx context.Context, at int64, changes []enginekit.Change) (now int64, err error) {
	time.Sleep(time.Millisecond)
	if time.Now().Before(s.away) {
		return 0, errAway
	}
	now, err = s.memoryStore.Swap(ctx, at, changes)
	if swap := s.swap; swap != nil {
		s.swap = nil
		swap()
	}
	return now, err
}

func (s *lateStore) Load(ctx context.Context, keys []string) ([]enginekit.Row, int64, error) {
	time.Sleep(time.Millisecond)
	if time.Now().Before(s.away) {
		return nil, 0, errAway
	}
	return s.memoryStore.Load(ctx, keys)
}

func newLineStore() *lateStore {
	return &lateStore{memoryStore: newMemoryStore(func() int64 { return time.Now().UnixNano() })}
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

// A release that is lost, because the database is away, holds up the next caller for no longer than the lease: what its
// holder wanted to end is not renewed.
func TestALostReleaseHoldsUpTheNextCallerForALeaseAtMost(t *testing.T) {
	for _, process := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			s := newLineStore()
			all, slots := queues(t, s, 2), lineRule(t, "slots=concurrency 1 lease 2s")
			a, err := all[0].Acquire(t.Context(), slots.For("k", 1))
			if err != nil {
				t.Fatal(err)
			}
			s.away = time.Now().Add(1500 * time.Millisecond)
			if err := a.Done(t.Context()); err == nil {
				t.Error("the release had an answer, although the database is away")
			}
			start := time.Now()
			next, err := all[process].Acquire(t.Context(), slots.For("k", 1))
			if err != nil || time.Since(start) > 3*time.Second {
				t.Errorf("process %d: the next caller went after %v (%v), want within the lease of 2s and the outage", process, time.Since(start), err)
			}
			if err := next.Done(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(5 * time.Second) // no goroutine is left
		})
	}
}

// A caller leaves while its take is made, and the database goes away: the slot comes back.
func TestASlotThatWasTakenForOneWhoLeftComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLineStore()
		all, slots := queues(t, s, 1), lineRule(t, "slots=concurrency 1 lease 2s")
		ctx, leave := context.WithCancel(t.Context())
		s.swap = func() {
			leave()
			s.away = time.Now().Add(1500 * time.Millisecond)
			time.Sleep(20 * time.Millisecond)
		}
		if _, err := all[0].Acquire(ctx, slots.For("k", 1)); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		start := time.Now()
		next, err := all[0].Acquire(t.Context(), slots.For("k", 1))
		if err != nil || time.Since(start) > 3*time.Second {
			t.Errorf("the next caller went after %v (%v), want within the lease of 2s and the outage", time.Since(start), err)
		}
		if err := next.Done(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second) // no goroutine is left
	})
}

// The callers of three processes use slots and rates of a database nearly whole, and all go.
func TestCallersOfProcessesOnAStoreUseLimitsWhole(t *testing.T) {
	for text, least := range map[string]int{"s=concurrency 4 lease 30s": 800, "r=token bucket 100/s burst 10": 900} {
		synctest.Test(t, func(t *testing.T) {
			limit, n := lineRule(t, text), 0
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
			defer stop()
			grants := make(chan bool, 10_000)
			running := 0
			ended := make(chan bool)
			for _, q := range queues(t, newLineStore(), 3) {
				for range 5 {
					running++
					go func() {
						defer func() { ended <- true }()
						for ctx.Err() == nil {
							if weir.Kit.Held(limit) == nil {
								if _, err := q.Wait(ctx, limit.For("k", 1)); err == nil {
									grants <- true
								} else {
									time.Sleep(time.Millisecond) // near its end a wait is refused at once
								}
							} else if a, err := q.Acquire(ctx, limit.For("k", 1)); err == nil {
								grants <- true
								time.Sleep(40 * time.Millisecond)
								_ = a.Done(context.Background())
							}
						}
					}()
				}
			}
			for range running {
				<-ended
			}
			if n = len(grants); n < least {
				t.Errorf("%s: %d grants in 10 s, want %d at least", text, n, least)
			}
			time.Sleep(time.Second)
		})
	}
}
