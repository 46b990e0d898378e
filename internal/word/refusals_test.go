package word

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// remembered is what remembers refusals: a Single, or KeyRefusals of a few keys.
type remembered interface {
	refuses(key int, now int64) bool
	borrow(key int)
	giveBack(key int, state *algorithm.State, now int64)
}

type rememberedSingle struct{ *Single }

func (r rememberedSingle) refuses(_ int, now int64) bool {
	allowed, done := r.Allow(now, 1)
	return done && !allowed
}
func (r rememberedSingle) borrow(int) { r.Borrow(&algorithm.State{}) }
func (r rememberedSingle) giveBack(_ int, s *algorithm.State, now int64) {
	r.Return(s, now)
}

type rememberedKeys struct {
	KeyRefusals
	limit algorithm.Algorithm
}

// hash gives pairs of keys one place.
func (r *rememberedKeys) hash(key int) table.Hash {
	return table.Hash(key%2)*table.Shards + table.Hash(key)<<40
}
func (r *rememberedKeys) refuses(key int, now int64) bool { return r.Refuses(r.hash(key), now) }
func (r *rememberedKeys) borrow(key int)                  { r.Forget(r.hash(key)) }
func (r *rememberedKeys) giveBack(key int, s *algorithm.State, now int64) {
	r.Note(r.hash(key), r.limit, s, now)
}

// What is remembered as refused is what the state refuses, whatever was written since, and at earlier times too.
func TestRememberedRefusalsAreThoseOfTheState(t *testing.T) {
	const keys = 4
	known, admissions := 0, 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		period := 1 + random.Int64N(1<<random.IntN(40))
		capacity := 1 + random.Int64N(8)
		limit := []algorithm.Algorithm{
			algorithm.NewSlidingLog(capacity, period, random.Int64N(period+1)*random.Int64N(2), false),
			algorithm.NewRateGate(capacity, period),
			algorithm.NewConcurrency(capacity, period*random.Int64N(2)),
		}[random.IntN(3)]
		if !algorithm.RefusesQuietly(limit) {
			t.Fatalf("%T does not refuse quietly", limit)
		}
		single := NewSingle(limit, 0)
		memory, count := remembered(rememberedSingle{single}), 1
		if seed%2 == 0 {
			memory, count = &rememberedKeys{limit: limit}, keys
		}
		now := int64(time.Hour)
		states := make([]algorithm.State, count)
		for i := range states {
			states[i] = algorithm.Start(limit, now)
		}
		for op := range 400 {
			key := random.IntN(count)
			if random.IntN(3) == 0 {
				now += random.Int64N(2*period/capacity + 2)
			}
			asked := now - random.Int64N(period+1)*random.Int64N(2) // now or earlier
			copied := clone(states[key])
			admits, _ := algorithm.Allow(limit, &copied, asked, 1)
			if memory.refuses(key, asked) {
				known++
				if admits {
					t.Fatalf("seed %d op %d: %T: remembered as refused at %d, but the state %+v admits", seed, op, limit, asked, states[key])
				}
			}
			memory.borrow(key)
			if memory.refuses(key, asked) {
				t.Fatalf("seed %d op %d: %T: remembered as refused while it may be written to", seed, op, limit)
			}
			part := algorithm.Part{Algorithm: limit, State: states[key], Cost: 1 + random.Int64N(2)}
			switch random.IntN(12) {
			case 0:
				states[key] = algorithm.Start(limit, now)
			case 1, 2:
				part.Cost -= 4 * random.Int64N(2) // or gives units back
				parts := []algorithm.Part{part}
				algorithm.Record(parts, now)
				states[key] = parts[0].State
			default:
				if allowed, _ := algorithm.Allow(limit, &states[key], now, part.Cost); allowed {
					admissions++
				}
			}
			memory.giveBack(key, &states[key], now)
		}
	}
	if known < 10_000 || admissions < 10_000 {
		t.Errorf("%d refusals were remembered, and %d costs admitted: it proves little", known, admissions)
	}
}

// clone returns a state that shares nothing.
func clone(s algorithm.State) algorithm.State {
	if s.Log != nil {
		ring := make([]int64, len(*s.Log), cap(*s.Log))
		copy(ring[:cap(ring)], (*s.Log)[:cap(*s.Log)])
		s.Log = &ring
	}
	return s
}

// A limit that writes refusals, or has no list, remembers none.
func TestOnlyQuietRefusalsAreRemembered(t *testing.T) {
	for _, limit := range []algorithm.Algorithm{
		algorithm.NewSlidingLog(2, 100, 0, true), algorithm.NewTokenBucket(1, 100, 2), algorithm.NewLeakyBucket(1, 100, 2, 0), algorithm.NewCycle(2, 100, 0),
	} {
		if algorithm.RefusesQuietly(limit) {
			t.Errorf("%T: its refusals are remembered", limit)
		}
	}
}
