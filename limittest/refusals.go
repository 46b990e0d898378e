package limittest

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/weirflow/weir"
)

// refusalNamed tests each refusal of every verb against the waits of its limits alone: rules of one name share their
// states, so a rule of one of the limits sees the same state.
func refusalNamed(f *fixture) {
	causes := map[weir.Cause]int{}
	for i, limits := range [][]weir.Limit{
		{weir.SlidingLog{Rate: weir.Per(5, time.Second), Gap: 50 * time.Millisecond}},
		{weir.SlidingLog{Rate: weir.Per(5, time.Second), Gap: time.Second}},
		{weir.SlidingLog{Rate: weir.Per(5, time.Second), Gap: 50 * time.Millisecond, CountDenied: true}},
		{weir.LeakyBucket{Rate: weir.PerMinute(7), Queue: 4}},
		{
			weir.FixedWindow{Rate: weir.PerMinute(20)},
			weir.SlidingLog{Rate: weir.Per(6, 2*time.Second), Gap: 300 * time.Millisecond},
			weir.TokenBucket{Rate: weir.PerSecond(3), Burst: 5},
		},
		{weir.TokenBucket{Rate: weir.PerSecond(3), Burst: 5}, weir.SlidingWindow{Rate: weir.PerSecond(4)}, weir.FirstWindow{Rate: weir.PerMinute(25)}, weir.Cycle{Rate: weir.PerMinute(30)}},
		{weir.Unlimited{}, weir.TokenBucket{Rate: weir.PerHour(5)}, weir.FixedWindow{Rate: weir.PerHour(5)}},
		{weir.TokenBucket{Rate: weir.PerHour(5)}, weir.DenyAll{}},
	} {
		rule := f.rule("refuses "+string(rune('a'+i)), limits...)
		f.walk(rule, "k", func(step int) {
			for cost := int64(0); cost <= 6; cost++ {
				q := rule.For("k", cost)
				causes[f.peek(q).Cause]++
				f.wantRefusal(f.peek(q), q)
				if step%11 == int(cost) {
					f.wantRefusal(f.upTo(q), q)
					f.wantRefusal(f.take(q), q)
				}
				if step%13 == int(cost) && !rule.Delays() {
					f.wantRefusal(f.reserve(q).Decision, q)
				}
			}
		})
	}
	if causes[weir.ByCount] < 100 || causes[weir.ByGap] < 100 || causes[0] < 100 {
		f.Errorf("got %d admissions, %d refusals by a count and %d by a gap, want 100 of each: it proves nothing", causes[0], causes[weir.ByCount], causes[weir.ByGap])
	}
	f.wantRefusalOfSeveral()
}

func (f *fixture) upTo(q weir.Request) weir.Decision {
	f.Helper()
	a, err := f.engine.Do(context.Background(), weir.Call{Op: weir.OpTakeUpTo, Requests: []weir.Request{q}, Most: 2})
	f.decided("TakeUpTo", []weir.Request{q}, err)
	return a.Decision
}

// wantBindingLimit fails the test unless the decision names the limit that refuses, or that has the least remaining, and says
// when that limit alone is fresh again. The state must be that after the decision.
func (f *fixture) wantBindingLimit(d weir.Decision, q weir.Request) {
	f.Helper()
	want, least, reset := d.RefusedBy, int64(math.MaxInt64), time.Duration(0)
	for i, l := range q.Rule.Limits() {
		alone := f.peek(f.rule(q.Rule.Name(), l).For(q.Key, 0))
		if d.Allowed && alone.Remaining < least {
			want, least, reset = uint8(i), alone.Remaining, alone.ResetAfter
		} else if !d.Allowed && i == int(want) {
			reset = alone.ResetAfter
		}
	}
	if d.LimitIndex != want || d.LimitReset != reset || d.LimitReset > d.ResetAfter {
		f.Errorf("%s cost %d: got limit %d with a reset after %v, want limit %d and %v (%+v)", q.Rule, q.Cost, d.LimitIndex, d.LimitReset, want, reset, d)
	}
}

// wantRefusal fails the test unless the decision names the limit with the longest wait, and its cause. The
// state must be that after the decision.
func (f *fixture) wantRefusal(d weir.Decision, q weir.Request) {
	f.Helper()
	f.wantBindingLimit(d, q)
	var limit uint8
	var cause weir.Cause
	if !d.Allowed {
		limit, cause = f.refusing(q)
	}
	if d.RefusedBy != limit || d.Cause != cause {
		f.Errorf("%s cost %d: got limit %d and cause %q, want limit %d and cause %q (%+v)", q.Rule, q.Cost, d.RefusedBy, d.Cause, limit, cause, d)
	}
}

// refusing returns the limit and the cause of a refusal, by the waits of each limit alone.
func (f *fixture) refusing(q weir.Request) (limit uint8, cause weir.Cause) {
	longest := time.Duration(0)
	for i, l := range q.Rule.Limits() {
		wait := f.peek(f.rule(q.Rule.Name(), l).For(q.Key, q.Cost)).RetryAfter
		if wait <= longest {
			continue
		}
		longest, limit, cause = wait, uint8(i), weir.ByCount
		if f.gapLeft(l, q) >= wait && wait != weir.Never {
			cause = weir.ByGap
		}
	}
	return limit, cause
}

// gapLeft returns the wait under a log whose count never refuses.
func (f *fixture) gapLeft(l weir.Limit, q weir.Request) time.Duration {
	d := weir.Describe(l)
	if d.Gap == 0 {
		return 0
	}
	log := weir.SlidingLog{Rate: weir.Per(1000, d.Window), Gap: d.Gap, CountDenied: d.CountsDenied}
	return f.peek(f.rule(q.Rule.Name(), log).For(q.Key, q.Cost)).RetryAfter
}

// negativeFirst tests that a negative cost is the reported fault, even if its call has others.
func negativeFirst(f *fixture) {
	quota := f.rule("quota", weir.Quota{Count: 5, Unit: weir.Day})
	leaky := f.rule("leaky", weir.LeakyBucket{Rate: weir.PerHour(5), Queue: 4})
	long := strings.Repeat("k", weir.MaxKey+1)
	for _, call := range []weir.Call{
		{Op: weir.OpReserveAhead, Requests: []weir.Request{quota.For("k", -1)}},
		{Op: weir.OpReserve, Requests: []weir.Request{quota.For("k", -1)}},
		{Op: weir.OpReserve, Requests: []weir.Request{leaky.For("k", -1)}},
		{Op: weir.OpTake, Requests: []weir.Request{leaky.For("k", 1), quota.For("k", -1)}},
		{Op: weir.OpPeek, Requests: []weir.Request{quota.For(long, -1)}},
		{Op: weir.OpRecord, Requests: []weir.Request{quota.For(long, -1)}},
		{Op: weir.OpReturn, Requests: []weir.Request{quota.For(long, -1)}},
	} {
		_, err := f.engine.Do(context.Background(), call)
		if call.Op == weir.OpReserveAhead && errors.Is(err, errors.ErrUnsupported) {
			continue // of every request
		}
		f.wantRequestError(call.Op.String()+" of a cost of -1", err, "cost")
	}
}

// wantRefusalOfSeveral tests refusals of several requests, records and a batch.
func (f *fixture) wantRefusalOfSeveral() {
	f.Helper()
	one := f.rule("one", weir.TokenBucket{Rate: weir.PerHour(5)})
	two := f.rule("two", weir.TokenBucket{Rate: weir.PerHour(9)}, weir.SlidingLog{Rate: weir.PerHour(9), Gap: 30 * time.Minute})
	named := func(what string, d weir.Decision, rule *weir.Rule, limit uint8, cause weir.Cause) {
		f.Helper()
		if d.Rule != rule.Name() || d.RefusedBy != limit || d.Cause != cause {
			f.Errorf("%s: got rule %q, limit %d and cause %q, want %q, %d and %q (%+v)", what, d.Rule, d.RefusedBy, d.Cause, rule.Name(), limit, cause, d)
		}
	}
	requests := []weir.Request{one.For("k", 1), two.For("k", 1)}
	f.want("both", f.take(requests...), true, 0)
	named("the gap", f.take(requests...), two, 1, weir.ByGap)
	named("the gap, in another order", f.peek(requests[1], requests[0]), two, 1, weir.ByGap)
	named("a cost that never fits", f.take(one.For("k", 6), requests[1]), one, 0, weir.ByCount)
	named("a cost that never fits two limits", f.take(two.For("k", math.MaxInt64)), two, 0, weir.ByCount)
	results := make([]weir.Result, 1)
	if err := f.engine.Each(context.Background(), []weir.Call{{Op: weir.OpTake, Requests: requests}}, results); err != nil {
		f.Fatalf("Each: %v", err)
	}
	named("in a batch", results[0].Decision, two, 1, weir.ByGap)
	named("a record in the gap", f.record(two.For("k", 1)), two, 1, weir.ByGap)
	named("a record beyond the count", f.record(two.For("k", 9)), two, 1, weir.ByCount)
	named("a record that fits", f.record(one.For("k", 1)), one, 0, 0)
}
