package limittest

import (
	"math"

	"github.com/weirflow/weir"
)

func (f *fixture) takeUpTo(most int64, requests ...weir.Request) (times int64, d weir.Decision) {
	f.Helper()
	times, d, err := weir.TakeUpTo(f.Context(), f.engine, most, requests...)
	f.decided("TakeUpTo", requests, err)
	return times, d
}

// takesUpTo tests that TakeUpTo takes what Remaining holds, and refuses as Take does if that is nothing.
func takesUpTo(f *fixture) {
	f.ofEveryLimit(func(f *fixture, rule *weir.Rule) {
		f.walk(rule, "k", func(step int) {
			cost, most := int64(1+step%3), int64(1+step%4)
			q := rule.For("k", cost)
			before, want := f.peek(rule.For("k", 0)).Remaining, f.peek(q)
			times, d := f.takeUpTo(most, q)
			if times != min(most, before/cost) {
				f.Errorf("%s step %d: took %d units %d times, want %d at most, with %d remaining", rule, step, cost, times, most, before)
			}
			if times == 0 && d != want && !countsDenied(rule) {
				f.Errorf("%s step %d: refused with %+v, want %+v as of Take", rule, step, d, want)
			}
			if after := f.peek(rule.For("k", 0)); d.Remaining != after.Remaining || d.ResetAfter != after.ResetAfter {
				f.Errorf("%s step %d: got %+v, but afterwards %+v", rule, step, d, after)
			}
		})
		before := f.peek(rule.For("k", 0))
		if times, d := f.takeUpTo(0, rule.For("k", 1)); times != 0 || d != before {
			f.Errorf("%s: up to 0: took %d with %+v, want %+v", rule, times, d, before)
		}
	})
	wide, narrow := f.rule("wide", weir.TokenBucket{Rate: weir.PerHour(50)}), f.rule("narrow", weir.FixedWindow{Rate: weir.PerDay(7)})
	if times, d := f.takeUpTo(math.MaxInt64, wide.For("a", 3), narrow.For("a", 1), narrow.For("a", 1)); times != 3 || d.Rule != "narrow" || d.Remaining != 1 {
		f.Errorf("3 units of 50 and 2 of 7: taken %d times with %+v, want 3 times and 1 of narrow left", times, d)
	}
	f.wantRemaining("the wide one after 3 times 3 of 50", wide, "a", 41)
	_, _, err := weir.TakeUpTo(f.Context(), f.engine, -1, wide.For("a", 1))
	f.wantRequestError("TakeUpTo(-1)", err, "most")
}

func countsDenied(rule *weir.Rule) bool {
	return weir.Describe(rule.Limits()[0]).CountsDenied
}

// statelessLimits tests Unlimited and DenyAll, alone and beside a limit with a state.
func statelessLimits(f *fixture) {
	bucket := weir.TokenBucket{Rate: weir.PerHour(5)}
	free, none := f.rule("free", weir.Unlimited{}), f.rule("none", weir.DenyAll{})
	mixed, denied, plain := f.rule("r", weir.Unlimited{}, bucket), f.rule("r", bucket, weir.DenyAll{}), f.rule("r", bucket)
	for range 2 {
		f.want("unlimited", f.take(free.For("k", weir.MaxCount)), true, weir.MaxCount)
		f.want("more than MaxCount of unlimited", f.take(free.For("k", math.MaxInt64)), false, weir.MaxCount)
		f.want("a record of unlimited", f.record(free.For("k", 9)), true, weir.MaxCount)
		f.want("deny all", f.take(none.For("k", 1)), false, 0)
		f.want("0 of deny all", f.take(none.For("k", 0)), true, 0)
		f.want("a record of deny all", f.record(none.For("k", 1)), false, 0)
		d := f.take(plain.For("other", 1), denied.For("k", 2))
		if f.want("beside deny all", d, false, 0); d.RetryAfter != weir.Never || d.Limit != 0 || d.Key != "k" {
			f.Errorf("beside deny all: got %+v, want Never of 0", d)
		}
		f.wantRemaining("what deny all refused", plain, "k", 5)
		f.wantRemaining("another key of that decision", plain, "other", 5)
		if times, d := f.takeUpTo(7, free.For("k", 3)); times != 7 || !d.Allowed {
			f.Errorf("unlimited up to 7 times: took %d with %+v", times, d)
		}
		if times, d := f.takeUpTo(7, denied.For("k", 1)); times != 0 || d.Allowed {
			f.Errorf("deny all up to 7 times: took %d with %+v", times, d)
		}
	}
	f.want("beside unlimited", f.take(mixed.For("k", 2)), true, 3)
	f.want("a record beside deny all", f.record(denied.For("k", 1)), false, 0)
	f.wantRemaining("a record beside deny all counts", plain, "k", 2)
	f.want("a peek beside deny all", f.peek(denied.For("k", 0)), true, 0)
	if err := f.engine.Reset(f.Context(), mixed.For("k", 0), none.For("k", 0)); err != nil {
		f.Errorf("Reset: %v", err)
	}
	f.wantRemaining("a reset beside unlimited", plain, "k", 5)
	if err := f.reserve(free.For("k", 9)).Settle(f.Context(), 2); err != nil {
		f.Errorf("settling units of unlimited: %v", err)
	}
	if err := f.engine.Check(free, none, mixed, denied); err != nil {
		f.Errorf("Check: %v", err)
	}
}
