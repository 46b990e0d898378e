package algorithm_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
)

// This test holds two limits at once, in random states, and asks for both up to a random number of times.
func TestTakeUpToTakesAllThatFitsAndNoMore(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	names := slices.Sorted(maps.Keys(kinds))
	refused, some, all := 0, 0, 0
	for range 4000 {
		now := random.Int64N(1 << 40)
		var parts []algorithm.Part
		for range 1 + random.IntN(2) {
			part, last := randomPart(random, names[random.IntN(len(names))], now)
			if len(parts) > 0 && (part.Algorithm.Solitary() || parts[0].Algorithm.Solitary()) {
				continue
			}
			part.Cost = 1 + random.Int64N(3)
			parts, now = append(parts, part), max(now, last)
		}
		n := 1 + random.Int64N(12)
		more := slices.Clone(parts)
		for i := range more {
			more[i].State = more[i].State.Clone()
		}
		taken, answer := algorithm.TakeUpTo(parts, now, n)
		switch {
		case taken == n:
			all++
		case taken > 0:
			some++
		default:
			refused++
		}
		if answer.Allowed != (taken > 0) || taken > n {
			t.Fatalf("up to %d: took %d, answer %+v", n, taken, answer)
		}
		if taken == n {
			continue
		}
		for i := range more {
			more[i].Cost *= taken + 1
		}
		if one := algorithm.Peek(more, now); one.Allowed {
			t.Fatalf("up to %d: took %d, and %d would have fitted: %+v", n, taken, taken+1, one)
		}
	}
	if refused == 0 || some == 0 || all == 0 {
		t.Errorf("%d times nothing, %d times some and %d times all were taken: want each", refused, some, all)
	}
}

// randomPart returns a limit of a kind after some takes, and the time of the last one.
func randomPart(random *rand.Rand, kind string, now int64) (algorithm.Part, int64) {
	input := make([]byte, 64)
	for i := range input {
		input[i] = byte(random.Uint32())
	}
	a := kinds[kind](&source{input}).Algorithm
	part := algorithm.Part{Algorithm: a, State: a.Fresh()}
	for range random.IntN(6) {
		part.Cost = 1 + random.Int64N(max(a.Capacity()/2, 1))
		one := []algorithm.Part{part}
		algorithm.Take(one, now)
		part = one[0]
		now += random.Int64N(1 << random.IntN(36))
	}
	return part, now
}
