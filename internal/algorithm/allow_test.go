package algorithm

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Allow decides on lists in one pass, and leaves the state that Wait and Take leave.
func TestAllowOfAListIsWaitAndTake(t *testing.T) {
	admitted, refused := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		period, capacity := 1+r.Int64N(1<<r.IntN(40)), 1+r.Int64N(8)
		limit := []interface {
			Algorithm
			Saver
		}{
			NewSlidingLog(capacity, period, r.Int64N(period+1)*r.Int64N(2), r.IntN(4) == 0),
			NewRateGate(capacity, period),
			NewConcurrency(capacity, period*r.Int64N(2)),
		}[r.IntN(3)]
		now := int64(1 << 50)
		s := Start(limit, now)
		for op := range 300 {
			now += r.Int64N(2*period/capacity+2) * r.Int64N(2)
			at, n := now-r.Int64N(period+1)*(r.Int64N(4)/3), r.Int64N(capacity+2)
			want := copied(s)
			wantAllowed := n == 0
			switch {
			case n == 0:
			case n <= capacity && limit.Wait(want, at, n) == 0:
				want, wantAllowed = limit.Take(want, at, n), true
			case n <= capacity && countsDenied(limit):
				want = limit.Take(want, at, n)
			}
			got := copied(s)
			allowed, _ := Allow(limit, &got, at, n)
			if allowed != wantAllowed || !slices.Equal(limit.AppendState(nil, got), limit.AppendState(nil, want)) {
				t.Fatalf("seed %d op %d: %T: %d at %d: allowed %v and %v, want %v and %v", seed, op, limit, n, at, allowed, limit.AppendState(nil, got), wantAllowed, limit.AppendState(nil, want))
			}
			if s = got; allowed {
				admitted++
			} else {
				refused++
			}
			if r.IntN(8) == 0 {
				s = limit.Give(s, at, 1+r.Int64N(2))
			}
			if gate, ok := limit.(*RateGate); ok && r.IntN(8) == 0 && gate.Backlog(s, at, 1) == 0 {
				s = gate.Book(s, at, 1)
			}
		}
	}
	if admitted < 10_000 || refused < 10_000 {
		t.Errorf("%d admitted and %d refused: it proves little", admitted, refused)
	}
}

// copied returns a state that shares nothing.
func copied(s State) State {
	if s.Log != nil {
		numbers := make([]int64, len(*s.Log), cap(*s.Log))
		copy(numbers[:cap(numbers)], (*s.Log)[:cap(*s.Log)])
		s.Log = &numbers
	}
	return s
}
