package enginekit_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/otherwisetest"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/limittest"
)

// memoryStore is a store in memory, for tests. Its faults happen at random.
type memoryStore struct {
	clock func() int64

	mu     sync.Mutex
	rows   map[string]enginekit.Row
	ends   map[string]int64
	random *rand.Rand
	loads  atomic.Int64
	swaps  atomic.Int64
	locks  atomic.Int64

	conflicts int // of 100 swaps, and as many fail as a whole
	lost      int // of 100 swaps, half of them made
	fails     int // of 100 loads
}

func newMemoryStore(clock func() int64) *memoryStore {
	return &memoryStore{clock: clock, rows: map[string]enginekit.Row{}, ends: map[string]int64{}, random: rand.New(rand.NewPCG(1, 1))}
}

var errLost = errors.New("the connection is lost")

// breaks sets how many calls of 100 fail.
func (s *memoryStore) breaks(conflicts, lost, fails int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conflicts, s.lost, s.fails = conflicts, lost, fails
}

// happens is called with the lock held.
func (s *memoryStore) happens(percent int) bool { return s.random.IntN(100) < percent }

func (s *memoryStore) Load(_ context.Context, keys []string) (rows []enginekit.Row, now int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads.Add(1)
	if s.happens(s.fails) {
		return nil, 0, errLost
	}
	return s.of(keys), s.clock(), nil
}

func (s *memoryStore) of(keys []string) (rows []enginekit.Row) {
	for _, key := range keys {
		rows = append(rows, s.rows[key])
	}
	return rows
}

func (s *memoryStore) Swap(_ context.Context, at int64, changes []enginekit.Change) (now int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swaps.Add(1)
	now = s.clock()
	lost := s.happens(s.lost)
	switch {
	case s.happens(s.conflicts):
		return 0, enginekit.ErrConflict
	case lost && s.happens(50):
		return 0, errLost
	}
	for i := range changes {
		c := &changes[i]
		same := now >= at && !s.happens(s.conflicts)
		for j := range c.Writes {
			found := s.rows[c.Writes[j].Key]
			c.Writes[j].Found = &found
			same = same && found.Version == c.Writes[j].Old
		}
		if c.Done = same; same {
			s.write(c.Writes)
		}
	}
	if lost {
		return 0, errLost
	}
	return now, nil
}

func (s *memoryStore) write(writes []enginekit.Write) {
	for _, w := range writes {
		if w.New != 0 {
			s.rows[w.Key], s.ends[w.Key] = enginekit.Row{Version: w.New, State: slices.Clone(w.State)}, w.Ends
		}
	}
}

// lockingStore also locks, and sweeps.
type lockingStore struct{ *memoryStore }

func (s lockingStore) Lock(_ context.Context, keys []string, decide func([]enginekit.Row, int64) []enginekit.Write) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locks.Add(1)
	if s.happens(s.conflicts) {
		return enginekit.ErrConflict
	}
	s.write(decide(s.of(keys), s.clock()))
	return nil
}

func (s lockingStore) Sweep(_ context.Context, after string, before int64) (last string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, ends := range s.ends {
		if ends < before {
			delete(s.ends, key)
			delete(s.rows, key)
		}
	}
	return "", nil
}

// allEntries has the engine hold the logs of the vectors.
const allEntries = math.MaxInt64

func TestAnEngineThatLocksItsStorePassesTheSuiteAndItsVectors(t *testing.T) {
	limittest.Run(t, func(clock func() int64) weir.Engine {
		store := lockingStore{newMemoryStore(clock)}
		return enginekit.NewStore(store, enginekit.StoreOptions{Clock: clock, MaxEntries: allEntries, Conflicts: -1})
	})
}

func TestAStoreWhoseSwapsConflictPassesTheSuiteAndItsVectors(t *testing.T) {
	limittest.Run(t, func(clock func() int64) weir.Engine {
		store := lockingStore{newMemoryStore(clock)}
		store.breaks(5, 0, 0)
		return enginekit.NewStore(store, enginekit.StoreOptions{Clock: clock, MaxEntries: allEntries, Rows: 2})
	})
}

func TestOtherwiseOverAStoreIsTryReplaceTry(t *testing.T) {
	otherwisetest.Duel(t, randtest.Rounds(t, 80, 25), func(clock func() int64) weir.Engine {
		return enginekit.NewStore(newMemoryStore(clock), enginekit.StoreOptions{Clock: clock, MaxEntries: allEntries})
	})
}

func TestARepeatedCallWithOtherwiseIsPaidOnceInAStore(t *testing.T) {
	clock := func() int64 { return time.Now().UnixNano() }
	otherwisetest.PaidOnce(t, enginekit.NewStore(newMemoryStore(clock), enginekit.StoreOptions{}))
}
