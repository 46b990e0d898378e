package enginekit_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// A caller that leaves while its row is read was not counted, as it is told, and others of the row are decided.
func TestACallerThatLeavesBeforeItsDecisionIsNotCounted(t *testing.T) {
	for _, conflicts := range []int{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			store := slowStore{newMemoryStore(wallClock), time.Second}
			e := enginekit.NewStore(slowLocker{store}, enginekit.StoreOptions{Conflicts: conflicts})
			rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(10)})
			left := make(chan error)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				_, err := e.Take(ctx, rule.For("k", 1))
				left <- err
			}()
			synctest.Wait()
			d, err := e.Take(t.Context(), rule.For("k", 1))
			if err != nil || !d.Allowed {
				t.Errorf("a caller that stays: %+v and %v", d, err)
			}
			counted := weir.WasCounted(<-left)
			d, err = e.Peek(t.Context(), rule.For("k", 0))
			if used := 10 - d.Remaining; err != nil || counted == weir.CountedNo && used != 1 {
				t.Errorf("conflicts %d: the caller that left was told %v, and %d units of 2 calls are used (%v)", conflicts, counted, used, err)
			}
		})
	}
}

type slowLocker struct{ slowStore }

func (s slowLocker) Lock(ctx context.Context, keys []string, decide func([]enginekit.Row, int64) []enginekit.Write) error {
	time.Sleep(s.delay)
	return lockingStore{s.memoryStore}.Lock(ctx, keys, decide)
}

// cheatingStore fails after it has said what it did, as a database does that finds a conflict at the commit.
type cheatingStore struct {
	*memoryStore
	swaps, loads int // that still fail
}

func (s *cheatingStore) Swap(ctx context.Context, at int64, changes []enginekit.Change) (int64, error) {
	if s.swaps--; s.swaps >= 0 {
		for i := range changes {
			changes[i].Done = true
		}
		return s.clock(), fmt.Errorf("commit: %w", enginekit.ErrConflict)
	}
	return s.memoryStore.Swap(ctx, at, changes)
}

func (s *cheatingStore) Load(ctx context.Context, keys []string) ([]enginekit.Row, int64, error) {
	if s.loads--; s.loads >= 0 {
		return nil, 0, fmt.Errorf("snapshot: %w", enginekit.ErrConflict)
	}
	return s.memoryStore.Load(ctx, keys)
}

func TestAConflictWritesNothingAndIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &cheatingStore{newMemoryStore(wallClock), 3, 3}
		e := enginekit.NewStore(store, enginekit.StoreOptions{})
		rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(10)})
		if d, err := e.Take(t.Context(), rule.For("k", 1)); err != nil || !d.Allowed {
			t.Errorf("got %+v and %v", d, err)
		}
		store.loads = 3
		if d, err := enginekit.NewStore(store, enginekit.StoreOptions{}).Peek(t.Context(), rule.For("k", 1)); err != nil || d.Remaining != 9 {
			t.Errorf("the store has %+v (%v), want 9 left", d, err)
		}
	})
}

// conflictingStore has another writer before each swap.
type conflictingStore struct{ lockingStore }

func (s conflictingStore) Swap(ctx context.Context, at int64, changes []enginekit.Change) (int64, error) {
	s.mu.Lock()
	for i := range changes {
		for _, w := range changes[i].Writes {
			s.rows[w.Key] = enginekit.Row{Version: w.Old + 1, State: s.rows[w.Key].State}
		}
	}
	s.mu.Unlock()
	return s.memoryStore.Swap(ctx, at, changes)
}

func TestARowIsLockedAfterTwoConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := conflictingStore{lockingStore{newMemoryStore(wallClock)}}
		e := enginekit.NewStore(store, enginekit.StoreOptions{})
		rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(10)})
		for i := range 3 {
			if d, err := e.Take(t.Context(), rule.For("k", 1)); err != nil || d.Remaining != int64(9-i) {
				t.Errorf("take %d: %+v and %v", i, d, err)
			}
			if swaps, locks := store.swaps.Load(), store.locks.Load(); swaps != int64(2*i+2) || locks != int64(i+1) {
				t.Errorf("after take %d: %d swaps and %d locks, want two swaps and a lock each", i, swaps, locks)
			}
		}
	})
}

// Conflicts without an end are an error after bounded attempts, with pauses between them.
func TestEndlessConflictsAreAnErrorThatCountedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := conflictingStore{lockingStore{newMemoryStore(wallClock)}}
		e := enginekit.NewStore(struct{ enginekit.Store }{store}, enginekit.StoreOptions{})
		began := time.Now()
		_, err := e.Take(t.Context(), mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(10)}).For("k", 1))
		if weir.WasCounted(err) != weir.CountedNo || !weir.Unavailable(err) {
			t.Errorf("got %v, want an error that counted nothing", err)
		}
		if n, took := store.swaps.Load(), time.Since(began); n != 20 || took < 50*time.Millisecond || took > 2*time.Second {
			t.Errorf("%d swaps in %v, want 20 with pauses of at most 64 ms", n, took)
		}
	})
}

// A peek locks nothing, so that it also works on a server that cannot be written.
func TestAPeekLocksNothing(t *testing.T) {
	store := newMemoryStore(wallClock)
	e := enginekit.NewStore(lockingStore{store}, enginekit.StoreOptions{Conflicts: -1})
	rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(10)})
	for i := range 3 {
		if _, err := e.Take(t.Context(), rule.For("k", 1)); err != nil {
			t.Fatal(err)
		}
		if d, err := e.Peek(t.Context(), rule.For("k", 1)); err != nil || d.Remaining != int64(9-i) {
			t.Errorf("peek %d: %+v and %v", i, d, err)
		}
	}
	if got := store.locks.Load(); got != 3 {
		t.Errorf("%d locks, want those of the 3 takes", got)
	}
}

// A row has a bounded number of identities, so that a hot key does not write megabytes with each decision.
func TestARowKeepsABoundedNumberOfIdentities(t *testing.T) {
	store := newMemoryStore(wallClock)
	e := enginekit.NewStore(store, enginekit.StoreOptions{})
	rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(100_000)})
	take := func(i int) int64 {
		a, err := e.Do(t.Context(), weir.Call{Op: weir.OpTake, Requests: []weir.Request{rule.For("k", 1)}, Identity: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		return a.Decision.Remaining
	}
	for i := range 1100 {
		take(i)
	}
	if size := len(store.rows["r\x00k"].State); size > 64<<10 {
		t.Errorf("the row has %d bytes", size)
	}
	if got := take(1099); got != 98_900 {
		t.Errorf("the last identity: %d are left, want 98900", got)
	}
	if got := take(1099 - 1023); got != 98_900+1023 {
		t.Errorf("the oldest identity that is kept: %d are left, want those of its first answer", got)
	}
}
