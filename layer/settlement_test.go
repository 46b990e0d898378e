package layer_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// Reservations that are settled late, through a prefetch and beside an outage, never give a window units of another one: in each
// window at most the limit is used.
func TestALateSettlementThroughALayerGivesNothingToAnotherWindow(t *testing.T) {
	const limit, window = 100, time.Minute
	rule := mustRule(t, "r=fixed window 100/m")
	layers := map[string]func(t *testing.T, r *remote) weir.Engine{
		"prefetch": func(t *testing.T, r *remote) weir.Engine { return prefetched(t, r) },
		"guard": func(t *testing.T, r *remote) weir.Engine {
			r.fails.Store(true)
			g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, Peers: 1})
			t.Cleanup(g.Close)
			return g
		},
	}
	for name, over := range layers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(1, 7))
				remote := newRemote()
				engine := over(t, remote)
				var open, earlier []*weir.Reservation // of this window, and of the ones before
				for range 8 {
					began := time.Now()
					for time.Since(began) < window {
						if len(earlier) > 0 && random.IntN(2) == 0 {
							if err := earlier[0].Settle(t.Context(), random.Int64N(2)); err != nil {
								t.Fatal(err)
							}
							earlier = earlier[1:]
						} else if r, err := engine.Reserve(t.Context(), rule.For("k", 2)); err != nil {
							t.Fatal(err)
						} else if r.Decision.Allowed {
							open = append(open, r)
						}
						time.Sleep(time.Duration(random.Int64N(int64(10 * time.Millisecond))))
					}
					if 2*len(open) > limit || len(open) < limit/2-1 {
						t.Errorf("%d units of a window of %d were used", 2*len(open), limit)
					}
					earlier, open = append(earlier, open...), nil
					time.Sleep(time.Until(time.Now().Truncate(window).Add(window)))
				}
			})
		})
	}
}

// A late settlement of what a policy granted owes the engine no less of the window that is open.
func TestALateSettlementDuringAnOutageForgivesNothingOfTheOpenWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := mustRule(t, "r=fixed window 100/m and sliding log 100/m")
		r := newRemote()
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, Peers: 1})
		defer g.Close()
		r.fails.Store(true)
		for range 20 { // until nothing is sent any more
			_, _ = g.Peek(t.Context(), rule.For("k", 1))
		}
		early, err := g.Reserve(t.Context(), rule.For("k", 60))
		if err != nil || !early.Decision.Allowed {
			t.Fatalf("got %+v, %v, want a reservation", early, err)
		}
		time.Sleep(time.Minute)
		if takes(t, g, 30, rule, "k") != 30 {
			t.Fatal("30 units of the next window were refused")
		}
		if err := early.Cancel(context.Background()); err != nil {
			t.Fatal(err)
		}
		r.fails.Store(false)
		time.Sleep(5 * time.Second)
		windowed := mustRule(t, "r=fixed window 100/m")
		if got := remaining(t, r.memory, windowed, "k"); got != 70 {
			t.Errorf("the engine has %d of 100 left, want the 30 of the open window recorded", got)
		}
	})
}
