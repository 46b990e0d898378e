package memory

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/calendar"
	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/randtest"
)

// every are all kinds of limits that a rule can hold, with drawn numbers.
var every = map[string]func(r *rand.Rand) algorithm.Algorithm{
	"token bucket": func(r *rand.Rand) algorithm.Algorithm {
		return algorithm.NewTokenBucket(1+r.Int64N(40), 1+r.Int64N(3e9), 1+r.Int64N(20))
	},
	"leaky bucket": func(r *rand.Rand) algorithm.Algorithm {
		queue := r.Int64N(20)
		return algorithm.NewLeakyBucket(1+r.Int64N(40), 1+r.Int64N(3e9), queue, r.Int64N(queue+1))
	},
	"fixed window":   func(r *rand.Rand) algorithm.Algorithm { return algorithm.NewFixedWindow(1+r.Int64N(20), 1e9) },
	"first window":   func(r *rand.Rand) algorithm.Algorithm { return algorithm.NewFirstWindow(1+r.Int64N(20), 1e9) },
	"sliding window": func(r *rand.Rand) algorithm.Algorithm { return algorithm.NewSlidingWindow(1+r.Int64N(20), 1e9) },
	"cycle": func(r *rand.Rand) algorithm.Algorithm {
		return algorithm.NewCycle(1+r.Int64N(20), 1e9, r.Int64N(1e9))
	},
	"own cycle": func(r *rand.Rand) algorithm.Algorithm { return algorithm.NewOwnCycle(1+r.Int64N(20), 1e9) },
	"quota": func(r *rand.Rand) algorithm.Algorithm {
		return algorithm.NewQuota(1+r.Int64N(20), 1e9, calendar.Calendar{Unit: calendar.Day, Zone: time.UTC})
	},
	"sliding log": func(r *rand.Rand) algorithm.Algorithm {
		return algorithm.NewSlidingLog(1+r.Int64N(20), 1e9, r.Int64N(1e8), r.IntN(2) == 0)
	},
	"rate gate":   func(r *rand.Rand) algorithm.Algorithm { return algorithm.NewRateGate(1+r.Int64N(20), 1e9) },
	"concurrency": func(r *rand.Rand) algorithm.Algorithm { return algorithm.NewConcurrency(1+r.Int64N(20), 1e9) },
	"unlimited":   func(*rand.Rand) algorithm.Algorithm { return algorithm.NewUnlimited() },
	"deny all":    func(*rand.Rand) algorithm.Algorithm { return algorithm.NewDenyAll() },
}

// Whatever the limit, a take or a peek on the fast path answers like the functions on its state.
func TestTakesAndPeeksOfEveryLimitAnswerLikeItsState(t *testing.T) {
	for name, newLimit := range every {
		t.Run(name, func(t *testing.T) {
			for seed := range randtest.Seeds(t, 40, 40) {
				random := rand.New(rand.NewPCG(seed, 45))
				now := int64(1_700_000_000_123_456_789)
				e, m, r := engineAt(&now, 0), statesModel{}, ruleFor(limitOf{newLimit(random), name})
				for op := range 200 {
					now += random.Int64N(int64(time.Second)) >> random.IntN(20)
					cost := random.Int64N(8)
					if op%50 == 49 {
						cost = r.Parts[0].Algorithm.Capacity() + random.Int64N(2)
					}
					requests := []compiled.Request{{Rule: r, Key: "k", Cost: cost}}
					verb := []Verb{Take, Peek}[random.IntN(2)]
					if got, want := m.askAll(t, e, verb, requests, now); got != want {
						t.Fatalf("seed %d, op %d, verb %d, cost %d at %d:\ngot  %+v\nwant %+v", seed, op, verb, cost, now, got, want)
					}
				}
			}
		})
	}
}
