package layer_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// drawLimit draws a limit, often one at a bound.
func drawLimit(draw *rand.Rand) weir.Limit {
	number := func() int64 {
		return []int64{1, 2, 3, 1 + draw.Int64N(100), 1 + draw.Int64N(1e9), 1e9, 1 + draw.Int64N(1<<53), 1 << 53}[draw.IntN(8)]
	}
	period := []time.Duration{1, time.Microsecond, time.Second, time.Duration(1 + draw.Int64N(int64(weir.MaxPeriod))), weir.MaxPeriod}[draw.IntN(5)]
	rate, n := weir.Per(number(), period), number()
	return []weir.Limit{
		weir.TokenBucket{Rate: rate, Burst: n}, weir.TokenBucket{Rate: rate}, weir.LeakyBucket{Rate: rate, Queue: n, NoDelay: min(n, number())},
		weir.FixedWindow{Rate: rate}, weir.SlidingWindow{Rate: rate}, weir.Cycle{Rate: rate, Origin: time.Duration(draw.Int64())},
		weir.SlidingLog{Rate: weir.Per(min(rate.Count, 1000), period), Gap: time.Duration(draw.Int64N(int64(period) + 1)), CountDenied: draw.IntN(2) == 0},
		weir.RateGate{Rate: weir.Per(min(rate.Count, 1000), period)}, weir.Concurrency{Slots: n, Lease: period},
		weir.Quota{Count: n, Unit: weir.CalendarUnit(1 + draw.IntN(5)), Zone: "Europe/Paris"}, weir.FirstWindow{Rate: rate},
	}[draw.IntN(11)]
}

// Whatever the limits and the number of processes, a share of them decides, and the engine gets what it granted.
func TestEachShareOfALimitDecides(t *testing.T) {
	draw, made := rand.New(rand.NewPCG(30, 30)), 0
	for i := range 1500 {
		limits := []weir.Limit{drawLimit(draw), drawLimit(draw)}[:1+draw.IntN(2)]
		rule, err := weir.NewRule(fmt.Sprint("r", i), limits...)
		if err != nil {
			continue
		}
		made++
		r, peers := newRemote(), int(1+draw.Int64N(1<<uint(1+draw.IntN(30))))
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, Peers: peers})
		r.fails.Store(true)
		for range 6 {
			if d, err := g.Take(t.Context(), rule.For("k", 1)); err != nil || d.Limit < 1 || d.Remaining < 0 {
				t.Fatalf("%s by %d processes: got %+v and %v, want a decision", rule, peers, d, err)
			}
		}
		g.Close()
	}
	if made < 500 {
		t.Fatalf("%d rules were made, want 500", made)
	}
}
