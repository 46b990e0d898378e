package redislimit_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

const ages = 300 * 24 * time.Hour // nothing comes back within a test

// everyKind returns limits of n units, one of each kind.
func everyKind(n int64) []weir.Limit {
	return []weir.Limit{
		weir.TokenBucket{Rate: weir.Per(n, ages)}, weir.LeakyBucket{Rate: weir.Per(n, ages), Queue: n - 1},
		weir.FixedWindow{Rate: weir.Per(n, ages)}, weir.SlidingWindow{Rate: weir.Per(n, ages)}, weir.SlidingLog{Rate: weir.Per(n, ages)},
		weir.RateGate{Rate: weir.Per(n, ages)}, weir.Cycle{Rate: weir.Per(n, ages)}, weir.Concurrency{Slots: n, Lease: time.Hour},
		weir.Quota{Count: n, Unit: weir.Year}, weir.FirstWindow{Rate: weir.Per(n, ages)},
	}
}

func TestTakeUpToIsOneCallAndOneDecision(t *testing.T) {
	engine := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{})
	wide, many := newRule(t, "wide", weir.TokenBucket{Rate: weir.Per(1e9, ages)}), newRule(t, "many", weir.FixedWindow{Rate: weir.Per(100, ages)}, weir.SlidingLog{Rate: weir.Per(70, ages)}, weir.Concurrency{Slots: 90, Lease: time.Hour})
	for i, want := range []int64{23, 0} {
		before := engine.Stats()
		times, d, err := weir.TakeUpTo(t.Context(), engine, math.MaxInt64, wide.For("a", 1000), many.For("b", 3))
		after := engine.Stats()
		if times != want || d.Allowed != (want > 0) || d.Remaining != 1 || d.Rule != "many" || err != nil {
			t.Errorf("take %d: %d times with %+v and %v, want %d times and 1 of 70 left", i, times, d, err, want)
		}
		if after.Calls != before.Calls+1 || after.Decisions != before.Decisions+1 {
			t.Errorf("take %d: it was %+v and is %+v, want one call and one decision", i, before, after)
		}
	}
	if d, err := engine.Peek(t.Context(), wide.For("a", 0)); d.Remaining < 1e9-23000 || d.Remaining > 1e9-22000 || err != nil {
		t.Errorf("of the wide one: %+v and %v, want 23 times 1000 taken, and a few units back since", d, err)
	}
}

// Callers that take up to n units, beside callers that take one, never take more than there is, and leave nothing.
func TestTakersUpToShareExactlyWhatThereIs(t *testing.T) {
	const units = 600
	engine := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{})
	for _, limit := range everyKind(units) {
		rule := newRule(t, limit.String(), limit)
		var total atomic.Int64
		var all sync.WaitGroup
		for caller := range 8 {
			all.Go(func() {
				for most := int64(1 + caller%2*6); ; { // Take, or 7 at most
					times, d, err := weir.TakeUpTo(t.Context(), engine, most, rule.For("k", 1))
					if total.Add(times); times == 0 || err != nil || !d.Allowed {
						if d.Remaining != 0 || err != nil {
							t.Errorf("%s: refused with %+v and %v", limit, d, err)
						}
						return
					}
				}
			})
		}
		all.Wait()
		if got := total.Load(); got != units {
			t.Errorf("%s: %d units were taken, want all %d", limit, got, units)
		}
	}
}

// Callers take two keys on two lanes, of which one has less room. The surplus of the other lane is given back
// exactly.
func takersAcross(t *testing.T, client rueidis.Client) {
	engine := newEngine(t, client, redislimit.Options{Prefix: fresh()})
	for _, limit := range everyKind(1000) {
		if _, ok := limit.(weir.LeakyBucket); ok {
			continue // it decides alone
		}
		rule, narrow := newRule(t, limit.String(), limit), newRule(t, "narrow", weir.FixedWindow{Rate: weir.Per(60, ages)})
		for n := range 4 { // the narrow one is on an earlier lane, or on a later one
			key, other := fmt.Sprint("k", n), fmt.Sprint("narrow ", limit, n)
			var total atomic.Int64
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for range 4 {
						times, _, err := weir.TakeUpTo(t.Context(), engine, 7, rule.For(key, 2), narrow.For(other, 1))
						if total.Add(times); err != nil {
							t.Errorf("%s: %v", limit, err)
						}
					}
				})
			}
			all.Wait()
			before := total.Load()
			times, d, err := weir.TakeUpTo(t.Context(), engine, 99, rule.For(key, 2), narrow.For(other, 1))
			if err != nil || times != 60-before || d.Allowed != (times > 0) || d.Remaining != 0 || d.Rule != "narrow" {
				t.Errorf("%s: after %d of 60: %d times with %+v and %v, want the rest", limit, before, times, d, err)
			}
			if d, err := engine.Peek(t.Context(), rule.For(key, 0)); err != nil || d.Remaining > 1000-2*60 || d.Remaining < 1000-2*60-unreturned(limit) {
				t.Errorf("%s: after 60 times 2 units of 1000: %+v and %v", limit, d, err)
			}
		}
	}
}

func TestALateTakeUpToIsUndoneWhole(t *testing.T) {
	server := redistest.Start(t)
	engine := newEngine(t, dial(t, server), redislimit.Options{})
	for i, limit := range everyKind(90) {
		rule := newRule(t, limit.String(), limit)
		if times, _, err := weir.TakeUpTo(t.Context(), engine, 5, rule.For("k", 2)); times != 5 || err != nil {
			t.Fatalf("%s: taken %d times (%v), want 5", limit, times, err)
		}
		server.Stop()
		times := int64(0)
		err := redislimit.AskAndLeave(t, engine, func(ctx context.Context) (err error) {
			times, _, err = weir.TakeUpTo(ctx, engine, 99, rule.For("k", 3))
			return err
		})
		if times != 0 || err == nil {
			t.Errorf("%s: while the server hangs: taken %d times, want an error", limit, times)
		}
		server.Cont()
		eventually(t, "the late take is undone", func() string {
			d, err := engine.Peek(t.Context(), rule.For("k", 0))
			if s := engine.Stats(); err != nil || s.GivenBack != uint64(i+1) || d.Remaining != 80 {
				return fmt.Sprintf("%s: %+v (%v) and %+v, want 80 remaining", limit, d, err, s)
			}
			return ""
		})
	}
}

func TestTakeUpToOnANewServerThatIsDeniedTakesNothing(t *testing.T) {
	now := int64(1_700_000_000) * 1e9
	engine := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{DenyNewServer: true, Clock: func() int64 { return now }})
	rule := newRule(t, "r", weir.FixedWindow{Rate: weir.PerHour(5)}, weir.SlidingLog{Rate: weir.PerDay(9)})
	for _, want := range []int64{0, 0, 5, 0} {
		times, d, err := weir.TakeUpTo(t.Context(), engine, 7, rule.For("k", 1))
		if times != want || d.Allowed != (want > 0) || err != nil {
			t.Errorf("%v after the first call: %d times with %+v and %v, want %d", time.Duration(now-1_700_000_000e9), times, d, err, want)
		}
		now += int64(12 * time.Hour)
		if want == 5 {
			now -= int64(12 * time.Hour)
		}
	}
}

func TestTakeUpToOfADamagedStateIsAnErrorAndTakesNothing(t *testing.T) {
	server := redistest.Start(t)
	engine := newEngine(t, dial(t, server), redislimit.Options{})
	sound := newRule(t, "sound", weir.TokenBucket{Rate: weir.Per(90, ages)})
	for _, limit := range everyKind(90) {
		if _, ok := limit.(weir.LeakyBucket); ok {
			continue
		}
		server.Do("FLUSHALL")
		rule := newRule(t, "r", limit)
		admitted(t, engine, t.Context(), rule.For("k", 1))
		stored, _ := server.Do("KEYS", "*").([]any)
		if len(stored) != 1 {
			t.Fatalf("%s: stored are %q, want one state", limit, stored)
		}
		server.Do("SET", fmt.Sprint(stored[0]), "no state")
		times, _, err := weir.TakeUpTo(t.Context(), engine, 7, sound.For("k", 1), rule.For("k", 1))
		if failed, ok := err.(*redislimit.Error); !ok || failed.Reason != redislimit.Damaged || failed.Counted != weir.CountedNo || times != 0 {
			t.Errorf("%s: taken %d times and error %v, want a damaged state and nothing taken", limit, times, err)
		}
		if d, err := engine.Peek(t.Context(), sound.For("k", 0)); d.Remaining != 90 || err != nil {
			t.Errorf("%s: the sound one has %+v and %v, want all 90", limit, d, err)
		}
	}
}
