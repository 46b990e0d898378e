package algorithm

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirflow/weir/internal/randtest"
)

// Take and Allow decide on lists in one pass, with the answers of Wait and Room, and leave the state that Take leaves.
func TestADecisionOnAListIsWaitTakeAndRoom(t *testing.T) {
	admitted, refused := 0, 0
	for seed := range randtest.Seeds(t, 400, 400) {
		r := rand.New(rand.NewPCG(seed, 0))
		period, capacity := 1+r.Int64N(1<<r.IntN(40)), 1+r.Int64N(8)
		limits := listLimits(r, capacity, period)
		limit := limits[0]
		now := int64(1 << 50)
		s := Start(limit, now)
		for op := range 300 {
			now += r.Int64N(2*period/capacity+2) * r.Int64N(2)
			at, n, identity := now-r.Int64N(period+1)*(r.Int64N(4)/3), r.Int64N(capacity+2), r.Uint64N(3)
			want, answer := decidedByParts(limit, copied(s), at, n, identity)
			got, gotAnswer := copied(s), Answer{}
			TakeOne(limit, &got, at, n, identity, &gotAnswer)
			if gotAnswer != answer || !slices.Equal(limit.AppendState(nil, got), limit.AppendState(nil, want)) {
				t.Fatalf("seed %d op %d: %T: %d at %d: %+v and %v, want %+v and %v", seed, op, limit, n, at, gotAnswer, limit.AppendState(nil, got), answer, limit.AppendState(nil, want))
			}
			got = copied(s)
			want, _ = decidedByParts(limit, copied(s), at, n, 0)
			if allowed, changed := Allow(limit, &got, at, n); allowed != answer.Allowed || changed != answer.Changed || !slices.Equal(limit.AppendState(nil, got), limit.AppendState(nil, want)) {
				t.Fatalf("seed %d op %d: %T: Allow of %d at %d: %v and %v, want %v and %v", seed, op, limit, n, at, allowed, limit.AppendState(nil, got), answer.Allowed, limit.AppendState(nil, want))
			}
			if s = got; answer.Allowed {
				admitted++
			} else {
				refused++
			}
			switch r.IntN(8) {
			case 0:
				s = limit.Give(s, at, 1+r.Int64N(2))
			case 1:
				if gate, ok := limit.(*RateGate); ok && gate.Backlog(s, at, 1) == 0 {
					s = gate.Book(s, at, 1)
				}
			case 2:
				limit = limits[r.IntN(2)] // the plan changes
			}
		}
	}
	if admitted < 10_000 || refused < 10_000 {
		t.Errorf("%d admitted and %d refused: it proves little", admitted, refused)
	}
}

type savedAlgorithm interface {
	Algorithm
	Saver
}

// listLimits returns two limits of one kind and period, whose states are lists.
func listLimits(r *rand.Rand, capacity, period int64) [2]savedAlgorithm {
	smaller := 1 + r.Int64N(capacity)
	gap, denied, lease := r.Int64N(period+1)*r.Int64N(2), r.IntN(4) == 0, period*r.Int64N(2)
	return [][2]savedAlgorithm{
		{NewSlidingLog(capacity, period, gap, denied), NewSlidingLog(smaller, period, gap, denied)},
		{NewRateGate(capacity, period), NewRateGate(smaller, period)},
		{NewConcurrency(capacity, lease), NewConcurrency(smaller, lease)},
	}[r.IntN(3)]
}

// decidedByParts returns the state and the answer of a take that is put together from the functions of the limit.
func decidedByParts(limit Algorithm, s State, now, n int64, identity uint64) (State, Answer) {
	a := Answer{Limit: limit.Capacity()}
	switch {
	case n > limit.Capacity():
		a.RetryAfter = Never
	case n > 0:
		a.RetryAfter = limit.Wait(s, now, n)
	}
	a.Allowed = a.RetryAfter == 0
	if counts := limit.CountsDenied() && n <= limit.Capacity(); n > 0 && (a.Allowed || counts) {
		TakeFor(limit, &s, now, n, identity)
		a.Changed = true
		if !a.Allowed {
			a.RetryAfter = limit.Wait(s, now, n)
		}
	}
	a.ByGap = !a.Allowed && a.RetryAfter < Never && a.RetryAfter <= limit.GapLeft(s, now)
	a.Remaining, a.ResetAfter = limit.Room(s, now), limit.Wait(s, now, limit.Capacity())
	a.LimitReset = a.ResetAfter
	return s, a
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

// A limit that became smaller is asked about callers that wait for more than it can ever admit.
func TestEveryLimitHasAWaitForACostAboveIt(t *testing.T) {
	const now = 1_700_000_000_000_000_000
	for _, a := range []Algorithm{
		NewTokenBucket(5, 1e9, 5), NewLeakyBucket(5, 1e9, 4, 0), NewFixedWindow(5, 1e9), NewSlidingWindow(5, 1e9), NewCycle(5, 1e9, 0),
	} {
		for _, taken := range []int64{0, 3, 9} {
			if wait := a.Wait(a.Take(a.Fresh(), now, taken), now, 12); wait <= 0 {
				t.Errorf("%T with %d units taken: 12 wait for %d ns", a, taken, wait)
			}
		}
	}
}
