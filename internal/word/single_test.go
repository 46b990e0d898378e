package word

import (
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/randtest"
)

// TestASingleDecidesLikeItsState takes at random from a Single, and from its state by the functions of 128 bits.
func TestASingleDecidesLikeItsState(t *testing.T) {
	decided := 0
	for seed := range randtest.Seeds(t, 200, 200) {
		j := newJudge(seed)
		limit := j.newLimit(j.newKind())
		single := NewSingle(limit, j.now)
		state := limit.Fresh()
		single.Return(&state, j.now)
		for op := range 200 {
			n := 1 + j.random.Int64N(min(limit.Capacity(), 5)+1)
			part := [1]algorithm.Part{{Algorithm: limit, State: state, Cost: n}}
			var got, want algorithm.Answer
			var done bool
			if j.random.IntN(2) == 0 {
				done = single.Take(j.now, n, &got)
				want = algorithm.Take(part[:], j.now)
			} else {
				got.Allowed, done = single.Allow(j.now, n)
				want.Allowed, part[0].Changed = algorithm.Allow(limit, &part[0].State, j.now, n)
			}
			if done {
				decided++
			}
			if done && got != want {
				t.Fatalf("seed %d op %d: %d of %T of %d, rate %+v: the words answer %+v, the state %+v", seed, op, n, limit, limit.Capacity(), algorithm.RateOf(limit), got, want)
			}
			if part[0].Changed {
				state = part[0].State
			}
			if !done || op%50 == 0 {
				borrowed := state // stays if it is not in the words
				single.Borrow(&borrowed)
				if known := done && state.A != limit.Fresh().A; known && (borrowed.A != state.A || borrowed.B != state.B || borrowed.C != state.C) {
					t.Fatalf("seed %d op %d: %T: the words hold %+v, the state is %+v", seed, op, limit, borrowed, state)
				}
				single.Return(&state, j.now)
			}
			r := algorithm.RateOf(limit)
			j.now += j.random.Int64N(max(r.Unit/max(r.Den, 1), 1000)*2>>j.random.IntN(4) + 2)
		}
	}
	if decided < 20_000 {
		t.Errorf("only %d decisions were made on words", decided)
	}
}
