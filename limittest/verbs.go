package limittest

import (
	"math"
	"time"

	"github.com/weirflow/weir"
)

// everyLimit returns one limit of each kind, each with capacity 5.
func everyLimit() []weir.Limit {
	rate := weir.PerSecond(5)
	return []weir.Limit{
		weir.TokenBucket{Rate: rate},
		weir.TokenBucket{Rate: weir.PerSecond(3), Burst: 5},
		weir.LeakyBucket{Rate: weir.PerMinute(7), Queue: 4},
		weir.LeakyBucket{Rate: rate, Queue: 4, NoDelay: 4},
		weir.FixedWindow{Rate: rate},
		weir.FirstWindow{Rate: rate},
		weir.Quota{Count: rate.Count, Unit: weir.Month},
		weir.SlidingWindow{Rate: rate},
		weir.SlidingLog{Rate: rate},
		weir.SlidingLog{Rate: rate, Gap: 50 * time.Millisecond},
		weir.SlidingLog{Rate: rate, CountDenied: true},
		weir.SlidingLog{Rate: rate, Gap: 50 * time.Millisecond, CountDenied: true},
	}
}

// ofEveryLimit runs prove with a rule of each kind of limit.
func (f *fixture) ofEveryLimit(prove func(f *fixture, rule *weir.Rule)) {
	for _, limit := range everyLimit() {
		rule := f.rule("every "+limit.String(), limit)
		if err := f.engine.Check(rule); err != nil {
			f.Errorf("Check(%s): %v", rule, err)
			continue
		}
		f.clock.set(start)
		prove(f, rule)
	}
}

func peekWritesNothing(f *fixture) {
	f.ofEveryLimit(func(f *fixture, rule *weir.Rule) {
		for cost := range int64(8) {
			before := f.peek(rule.For("k", cost))
			if after := f.peek(rule.For("k", cost)); after != before {
				f.Errorf("%s: Peek(%d) twice: got %+v, want %+v", rule, cost, after, before)
			}
			f.wantRemaining(rule.String()+" after peeks at a fresh key", rule, "k", 5)
		}
		f.take(rule.For("k", 5))
		full := f.peek(rule.For("k", 0))
		for range 5 {
			f.want(rule.String()+": peek at a full key", f.peek(rule.For("k", 1)), false, 0)
		}
		if after := f.peek(rule.For("k", 0)); after != full {
			f.Errorf("%s: after refused peeks: got %+v, want %+v", rule, after, full)
		}
	})
}

func recordCounts(f *fixture) {
	f.ofEveryLimit(func(f *fixture, rule *weir.Rule) {
		f.want(rule.String()+": record 4 of 5", f.record(rule.For("a", 4)), true, f.left(rule, 1))
		f.clock.advance(60 * time.Millisecond) // just beyond the gap
		d := f.record(rule.For("a", 3))
		f.want(rule.String()+": record 3 where they do not fit", d, false, 0)
		if d.RetryAfter <= 0 || d.RetryAfter == weir.Never {
			f.Errorf("%s: RetryAfter of a record over the limit: got %v, want a wait that ends", rule, d.RetryAfter)
		}
		f.want(rule.String()+": a take afterwards", f.peek(rule.For("a", 1)), false, 0)

		d = f.record(rule.For("b", 6))
		f.want(rule.String()+": record 6 of 5", d, false, 0)
		if d.RetryAfter != weir.Never {
			f.Errorf("%s: RetryAfter of a record above the capacity: got %v, want Never", rule, d.RetryAfter)
		}
		f.want(rule.String()+": record 2^63-1", f.record(rule.For("c", math.MaxInt64)), false, 0)
		f.want(rule.String()+": record 2^63-1 again", f.record(rule.For("c", math.MaxInt64)), false, 0)
		f.want(rule.String()+": a take afterwards", f.peek(rule.For("c", 1)), false, 0)
	})
}

// left returns n, or 0 where a gap hides the remaining units.
func (f *fixture) left(rule *weir.Rule, n int64) int64 {
	if weir.Describe(rule.Limits()[0]).Gap > 0 {
		return 0
	}
	return n
}

func returnGivesBack(f *fixture) {
	f.ofEveryLimit(func(f *fixture, rule *weir.Rule) {
		f.want(rule.String()+": return 1 of a fresh key", f.giveBack(rule.For("k", 1)), true, 5)
		f.want(rule.String()+": return 2^63-1 of a fresh key", f.giveBack(rule.For("k", math.MaxInt64)), true, 5)
		f.want(rule.String()+": take 4", f.take(rule.For("k", 4)), true, f.left(rule, 1))
		f.want(rule.String()+": give back 3", f.giveBack(rule.For("k", 3)), true, f.left(rule, 4))
		f.want(rule.String()+": give back more than was taken", f.giveBack(rule.For("k", 9)), true, 5)
		f.want(rule.String()+": all is there again", f.take(rule.For("k", 5)), true, 0)
		f.want(rule.String()+": and no more", f.peek(rule.For("k", 1)), false, 0)
	})
}

func resetForgets(f *fixture) {
	f.ofEveryLimit(func(f *fixture, rule *weir.Rule) {
		for _, key := range []string{"a", "b", "c"} {
			f.take(rule.For(key, 5))
		}
		if err := f.engine.Reset(f.Context(), rule.For("a", 0), rule.For("c", 7)); err != nil {
			f.Fatalf("%s: Reset: %v", rule, err)
		}
		f.wantRemaining(rule.String()+": a after its reset", rule, "a", 5)
		f.wantRemaining(rule.String()+": c after its reset", rule, "c", 5)
		f.wantRemaining(rule.String()+": b, which was not reset", rule, "b", 0)
		if err := f.engine.Reset(f.Context(), rule.For("never seen", 0)); err != nil {
			f.Errorf("%s: Reset of a fresh key: %v", rule, err)
		}
	})
}

func costZero(f *fixture) {
	f.ofEveryLimit(func(f *fixture, rule *weir.Rule) {
		f.want(rule.String()+": 0 of a fresh key", f.take(rule.For("k", 0)), true, 5)
		f.take(rule.For("k", 5))
		before := f.peek(rule.For("k", 0))
		f.want(rule.String()+": 0 of a full key", f.take(rule.For("k", 0)), true, 0)
		d := f.record(rule.For("k", 9))
		f.want(rule.String()+": over the limit", d, false, 0)
		d = f.take(rule.For("k", 0))
		f.want(rule.String()+": 0 in debt", d, true, 0)
		if d.RetryAfter != 0 || d.Delay != 0 {
			f.Errorf("%s: cost 0: got RetryAfter %v and Delay %v, want 0 (before: %+v)", rule, d.RetryAfter, d.Delay, before)
		}
		if again := f.record(rule.For("k", 0)); again != d {
			f.Errorf("%s: recording 0: got %+v, want %+v", rule, again, d)
		}
	})
}

func costAboveCapacity(f *fixture) {
	f.ofEveryLimit(func(f *fixture, rule *weir.Rule) {
		f.take(rule.For("k", 2))
		before := f.peek(rule.For("k", 0))
		for _, cost := range []int64{6, 1 << 40, math.MaxInt64} {
			d := f.take(rule.For("k", cost))
			want := before
			want.Allowed, want.RetryAfter, want.Cause = false, weir.Never, weir.ByCount
			if d != want {
				f.Errorf("%s: Take(%d): got %+v, want %+v", rule, cost, d, want)
			}
			if d := f.peek(rule.For("fresh", cost)); d.Allowed || d.RetryAfter != weir.Never || d.Remaining != 5 {
				f.Errorf("%s: Peek(%d) at a fresh key: got %+v, want Never and 5 remaining", rule, cost, d)
			}
		}
		if after := f.peek(rule.For("k", 0)); after != before {
			f.Errorf("%s: costs above the capacity wrote: got %+v, want %+v", rule, after, before)
		}
	})
}
