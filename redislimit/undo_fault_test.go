package redislimit

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// lateLimits are limits whose units flow back within a second or two, and how many units a second each admits beyond
// its burst.
var lateLimits = []struct {
	text string
	rate float64
}{
	{"token bucket 10/s burst 20", 10},
	{"sliding log 20/s", 0},
	{"rate gate 20/s", 0},
}

// A caller leaves, and the answer to its take comes two seconds later. The units have flowed back in the meantime, and
// another caller has them. The undo does not bring them back a second time.
func TestFaultAnAnswerThatComesLateAdmitsNothingMore(t *testing.T) {
	t.Parallel()
	for _, limit := range lateLimits {
		server := redistest.Start(t)
		proxy := startProxy(t, server.Addr)
		far, near := openFor(t, "redis://"+proxy.addr+"?timeout=10s", Options{}), openFor(t, "redis://"+server.Addr, Options{})
		rule := mustRule(t, "late="+limit.text)
		for _, e := range []*Engine{far, near} {
			warmUp(t, e)
		}
		proxy.stall.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // a busy machine, too, has sent it by then
		if d, err := far.Take(ctx, rule.For("k", 20)); err == nil {
			t.Fatalf("%s: Take whose answer is late: %+v", limit.text, d)
		}
		cancel()
		goOn(2 * time.Second)
		began := time.Now()
		if d, err := near.Take(t.Context(), rule.For("k", 19)); err != nil || !d.Allowed {
			t.Fatalf("%s: Take of 19 after two seconds: %+v, %v", limit.text, d, err)
		}
		proxy.stall.Store(false)
		eventually(t, limit.text+": the late answer was handled", func() error {
			if s := far.Stats(); s.GivenBack != 1 || s.Undoing != 0 {
				return fmt.Errorf("%+v", s)
			}
			return nil
		})
		checkMore(t, near, rule, 19, 20, limit.rate, began)
	}
}

// A caller of Book leaves, and the answer comes two seconds after the booked instant. What has flowed back since then does
// not come back a second time.
func TestFaultAnAnswerToABookingThatComesLateAdmitsNothingMore(t *testing.T) {
	t.Parallel()
	for _, limit := range []struct {
		text string
		rate float64
	}{{"token bucket 10/s burst 20", 10}, {"leaky bucket 10/s queue 19", 10}, {"rate gate 20/s", 0}, {"cycle 20/s", 0}} {
		server := redistest.Start(t)
		proxy := startProxy(t, server.Addr)
		far, near := openFor(t, "redis://"+proxy.addr+"?timeout=10s", Options{}), openFor(t, "redis://"+server.Addr, Options{})
		rule := mustRule(t, "late="+limit.text)
		for _, e := range []*Engine{far, near} {
			warmUp(t, e)
		}
		proxy.stall.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // a busy machine, too, has sent it by then
		if r, err := weir.ReserveAhead(ctx, far, time.Minute, rule.For("k", 20)); err == nil {
			t.Fatalf("%s: Book whose answer is late: %+v", limit.text, r.Decision)
		}
		cancel()
		goOn(time.Until(time.Now().Truncate(time.Second).Add(3 * time.Second))) // early in a cycle, which is 20 units anew
		began := time.Now()
		if d, err := near.Take(t.Context(), rule.For("k", 19)); err != nil || !d.Allowed {
			t.Fatalf("%s: Take of 19 after two seconds: %+v, %v", limit.text, d, err)
		}
		proxy.stall.Store(false)
		eventually(t, limit.text+": the late answer was handled", func() error {
			if s := far.Stats(); s.GivenBack != 1 || s.Undoing != 0 {
				return fmt.Errorf("%+v", s)
			}
			return nil
		})
		checkMore(t, near, rule, 19, 20, limit.rate, began)
	}
}

// checkMore takes all that is left, and fails if that and the units taken since began are above the bound.
func checkMore(t *testing.T, engine *Engine, rule *weir.Rule, taken int64, burst, rate float64, began time.Time) {
	t.Helper()
	more, _, err := weir.TakeUpTo(t.Context(), engine, math.MaxInt32, rule.For("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	elapsed := time.Since(began)
	if most := burst + rate*elapsed.Seconds(); float64(taken+more) > most && elapsed < 900*time.Millisecond {
		t.Errorf("%s: %d units and %d more within %v, want at most %.1f", rule, taken, more, elapsed, most)
	}
}

// A take across lanes fails after three seconds, because a later lane hangs. Its first part is undone, but brings back
// nothing that has flowed back in the meantime.
func TestFaultALateUndoAcrossLanesAdmitsNothingMore(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, "cluster-require-full-coverage no", "cluster-replica-no-failover yes")
	engine := openFor(t, "redis-cluster://"+cluster.Nodes[0].Addr+"?timeout=10s", Options{})
	place := keysOn(t, cluster, engine, cluster.Nodes[0], cluster.Nodes[1])
	for _, limit := range lateLimits {
		rule, other := mustRule(t, "late="+limit.text), mustRule(t, "other=fixed window 100/300d")
		first := rule.For("k", 20).Colocate(place[0])
		if _, err := engine.Take(t.Context(), rule.For("k", 0).Colocate(place[0]), other.For(place[1], 0)); err != nil {
			t.Fatal(err)
		}
		cluster.Nodes[1].Stop()
		failed := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		go func() {
			_, err := engine.Take(ctx, first, other.For(place[1], 1))
			failed <- err
		}()
		goOn(2200 * time.Millisecond)
		began := time.Now()
		second := first
		second.Cost = 19
		if d, err := engine.Take(t.Context(), second); err != nil || !d.Allowed {
			t.Fatalf("%s: Take of 19 after two seconds: %+v, %v", limit.text, d, err)
		}
		if err := <-failed; weir.WasCounted(err) != weir.CountedUnknown {
			t.Errorf("%s: Take across a lane that hangs: %v", limit.text, err)
		}
		cancel()
		goOn(50 * time.Millisecond)
		third := first
		third.Cost = 1
		more, _, err := weir.TakeUpTo(t.Context(), engine, math.MaxInt32, third)
		elapsed := time.Since(began)
		if most := 20 + limit.rate*elapsed.Seconds(); err != nil || float64(19+more) > most && elapsed < 900*time.Millisecond {
			t.Errorf("%s: 19 units and %d more within %v (%v), want at most %.1f", limit.text, more, elapsed, err, most)
		}
		cluster.Nodes[1].Cont()
		eventually(t, "nothing is left to undo", func() error {
			if s := engine.Stats(); s.Undoing != 0 || s.InFlight != 0 {
				return fmt.Errorf("%+v", s)
			}
			return nil
		})
		if err := engine.Reset(t.Context(), first); err != nil {
			t.Fatal(err)
		}
	}
}

// A release instant of a leaky bucket is given to one caller only, also if a caller in between left.
func TestFaultALateAnswerOfALeakyBucketGivesNoReleaseTwice(t *testing.T) {
	server := redistest.Start(t)
	now := time.Now().UnixNano() / 1e6 * 1e6
	engine := openFor(t, "redis://"+server.Addr+"?timeout=10s", Options{Clock: func() int64 { return now }})
	rule := mustRule(t, "r=leaky bucket 1/s queue 10")
	if _, err := engine.Take(t.Context(), rule.For("k", 0)); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if err := AskAndLeave(t, engine, func(ctx context.Context) error { _, err := engine.Take(ctx, rule.For("k", 1)); return err }); err == nil {
		t.Fatal("Take while the server hangs: want an error")
	}
	delays := make(chan time.Duration, 3)
	take := func() {
		d, err := engine.Take(context.Background(), rule.For("k", 1))
		if err != nil || !d.Allowed {
			t.Errorf("Take: %+v, %v", d, err)
		}
		delays <- d.Delay
	}
	go take()
	go take()
	server.Cont()
	seen := map[time.Duration]bool{}
	for range 2 {
		seen[<-delays] = true
	}
	eventually(t, "the late take was handled", func() error {
		if s := engine.Stats(); s.GivenBack != 1 || s.Undoing != 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	take()
	seen[<-delays] = true
	if len(seen) != 3 {
		t.Errorf("three callers were given the delays %v, want three different ones", seen)
	}
}
