package front

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

func newEstimate(t testing.TB, o EstimateOptions) *Estimate {
	t.Helper()
	e, err := NewEstimate(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAnEstimateIsWhatMostOfTheLastCallsCost(t *testing.T) {
	e := newEstimate(t, EstimateOptions{Min: 3, Max: 1000})
	for _, c := range []struct{ own, want int64 }{{0, 1000}, {70, 70}, {2, 3}, {5000, 1000}} {
		if got := e.Of("k", c.own); got != c.want {
			t.Errorf("before the first cost: got %d for an own estimate of %d, want %d", got, c.own, c.want)
		}
	}
	for i := range int64(19) {
		e.Learn("k", 101+i)
	}
	e.Learn("k", 0)
	if got := e.Of("k", 70); got != 70 {
		t.Errorf("after 19 costs: got %d, want the caller's 70", got)
	}
	e.Learn("k", 120)
	if got := e.Of("k", 70); got != 119 { // 19 of 20 cost no more
		t.Errorf("after the costs 101 to 120: got %d, want 119", got)
	}
	for range 100 {
		e.Learn("k", 1)
	}
	if got := e.Of("k", 70); got != 3 {
		t.Errorf("after 100 costs of 1: got %d, want the least of 3", got)
	}
	for range 6 {
		e.Learn("k", 1<<60)
	}
	if got := e.Of("k", 70); got != 1000 {
		t.Errorf("after 6 of 100 calls were very dear: got %d, want the most of 1000", got)
	}
	if got := e.Of("other", 0); got != 1000 {
		t.Errorf("another key: got %d, want 1000", got)
	}
}

// Against a list of all costs: the estimate is the least cost that the given percentage of the last 100 do not exceed.
func TestAnEstimateIsThatOfASlowModel(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		percent := 1 + random.IntN(99)
		e := newEstimate(t, EstimateOptions{Percent: percent, Max: weir.MaxCount})
		all := map[string][]int64{}
		for range 800 {
			key := fmt.Sprint(random.IntN(3))
			if random.IntN(2) == 0 {
				cost := 1 + random.Int64N(1+random.Int64N(1000))
				e.Learn(key, cost)
				all[key] = append(all[key], cost)
				continue
			}
			want, last := int64(7), all[key][max(0, len(all[key])-100):]
			if len(last) >= 20 {
				want = slices.Min(slices.DeleteFunc(slices.Clone(last), func(cost int64) bool {
					no := 0
					for _, other := range last {
						if other <= cost {
							no++
						}
					}
					return no*100 < percent*len(last)
				}))
			}
			if got := e.Of(key, 7); got != want {
				t.Fatalf("seed %d: p%d of %v: got %d, want %d", seed, percent, last, got, want)
			}
		}
	}
}

func TestAnEstimateForgetsTheKeysThatAreUsedLeast(t *testing.T) {
	e := newEstimate(t, EstimateOptions{Max: 1000, MaxKeys: 10})
	learn := func(key string) {
		for range 20 {
			e.Learn(key, 5)
		}
	}
	learn("busy")
	for i := range 1000 {
		learn(fmt.Sprint(i))
		if got := e.Of("busy", 0); got != 5 {
			t.Fatalf("after %d other keys: got %d, want 5", i, got)
		}
		if n := len(e.young) + len(e.old); n > 10 {
			t.Fatalf("%d keys are known, want at most 10", n)
		}
	}
	learn(strings.Repeat("k", 4096))
	for key := range e.young {
		if len(key) > 256 {
			t.Errorf("a key of %d bytes is kept", len(key))
		}
	}
	if got := e.Of("3", 0); got != 1000 {
		t.Errorf("a key of long ago: got %d, want 1000", got)
	}
}

func TestAnEstimateThatCannotBeIsRefused(t *testing.T) {
	for want, o := range map[string]EstimateOptions{
		"front: percent 100 is not within 1 and 99":                                                      {Percent: 100, Max: 5},
		"front: max 0 is not within min, which is 1 and at least 1, and 9007199254740992":                {},
		"front: max 5 is not within min, which is 6 and at least 1, and 9007199254740992":                {Min: 6, Max: 5},
		"front: max 5 is not within min, which is -1 and at least 1, and 9007199254740992":               {Min: -1, Max: 5},
		"front: max 9007199254740993 is not within min, which is 1 and at least 1, and 9007199254740992": {Max: weir.MaxCount + 1},
		"front: maxKeys -1 is below 1":                                                                   {Max: 5, MaxKeys: -1},
	} {
		if _, err := NewEstimate(o); err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(want, "front: ")) {
			t.Errorf("%+v: got %v, want %s", o, err, want)
		}
	}
}
