package limittest

import (
	"context"
	"math"
	"time"

	"github.com/weirflow/weir"
)

func takenAllOrNothing(f *fixture) {
	users := f.rule("users", weir.TokenBucket{Rate: weir.PerHour(5)})
	tenants := f.rule("tenants", weir.FixedWindow{Rate: weir.PerDay(8)})

	d := f.take(users.For("alice", 3), tenants.For("acme", 3))
	f.want("3 of 5 and 3 of 8", d, true, 2)
	f.wantRemaining("alice after both admitted", users, "alice", 2)
	f.wantRemaining("acme after both admitted", tenants, "acme", 5)

	d = f.take(tenants.For("acme", 3), users.For("alice", 3))
	f.want("3 where alice has 2", d, false, 2)
	f.wantRemaining("acme after alice was refused", tenants, "acme", 5)
	f.wantRemaining("alice after alice was refused", users, "alice", 2)

	d = f.take(users.For("bob", 1), users.For("alice", 1), users.For("carol", 6))
	f.want("two that fit and one that never does", d, false, 2)
	if d.RetryAfter != weir.Never {
		f.Errorf("RetryAfter with a cost above a capacity: got %v, want Never", d.RetryAfter)
	}
	f.wantRemaining("bob after carol was refused", users, "bob", 5)
	f.wantRemaining("alice after carol was refused", users, "alice", 2)
}

func limitsTakenAllOrNothing(f *fixture) {
	login := f.rule("login",
		weir.TokenBucket{Rate: weir.PerSecond(2), Burst: 4},
		weir.SlidingLog{Rate: weir.PerHour(6)},
		weir.SlidingWindow{Rate: weir.PerDay(100)})
	f.want("4 of 4, 6 and 100", f.take(login.For("k", 4)), true, 0)
	for range 10 {
		f.want("while the bucket is empty", f.take(login.For("k", 1)), false, 0)
	}
	f.clock.advance(2 * time.Second)
	d := f.take(login.For("k", 2))
	f.want("2 after the bucket has filled, when the log has 2 left", d, true, 0)
	if d.Limit != 6 {
		f.Errorf("limit of the tightest part: got %d, want 6 (%+v)", d.Limit, d)
	}
	f.want("when the log is full", f.take(login.For("k", 1)), false, 0)
}

func sameKeyTwice(f *fixture) {
	rule := f.rule("r", weir.TokenBucket{Rate: weir.PerHour(5)}, weir.FixedWindow{Rate: weir.PerDay(9)})
	f.want("3 + 3 of 5", f.take(rule.For("k", 3), rule.For("k", 3)), false, 5)
	f.want("peek 3 + 3 of 5", f.peek(rule.For("k", 3), rule.For("k", 3)), false, 5)
	d := f.take(rule.For("k", 4), rule.For("k", 4), rule.For("other", 1))
	f.want("4 + 4 of 5 beside another key", d, false, 4+1)
	if d.RetryAfter != weir.Never || d.Key != "k" {
		f.Errorf("sum above the capacity: got RetryAfter %v of key %q, want Never of k", d.RetryAfter, d.Key)
	}
	d = f.take(rule.For("k", math.MaxInt64), rule.For("k", math.MaxInt64))
	f.want("a sum above 2^63-1", d, false, 5)
	f.want("2 + 0 + 3 of 5", f.take(rule.For("k", 2), rule.For("k", 0), rule.For("k", 3)), true, 0)
	f.want("return 1 + 1", f.giveBack(rule.For("k", 1), rule.For("k", 1)), true, 2)
}

func bindingNamed(f *fixture) {
	fast := f.rule("fast", weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 3})
	slow := f.rule("slow", weir.TokenBucket{Rate: weir.PerMinute(1), Burst: 10})
	requests := []weir.Request{slow.For("s", 2), fast.For("f", 2)}

	d := f.take(requests...)
	f.wantBinding("allowed: the tightest", d, weir.Decision{Allowed: true, Rule: "fast", Key: "f", Limit: 3, Remaining: 1, ResetAfter: 2 * time.Minute, LimitReset: 2 * time.Second})
	d = f.take(requests...)
	f.wantBinding("refused by fast alone", d, weir.Decision{Cause: weir.ByCount, Rule: "fast", Key: "f", Limit: 3, Remaining: 1, RetryAfter: time.Second, ResetAfter: 2 * time.Minute, LimitReset: 2 * time.Second})

	f.take(slow.For("s", 8))
	d = f.take(requests...)
	f.wantBinding("refused by both: slow frees last", d, weir.Decision{Cause: weir.ByCount, Rule: "slow", Key: "s", Limit: 10, Remaining: 0, RetryAfter: 2 * time.Minute, ResetAfter: 10 * time.Minute, LimitReset: 10 * time.Minute})
	f.take(fast.For("f", 1))
	d = f.peek(fast.For("f", 1), slow.For("s", 1))
	f.wantBinding("limit of the first of the tightest", d, weir.Decision{Cause: weir.ByCount, Rule: "slow", Key: "s", Limit: 3, Remaining: 0, RetryAfter: time.Minute, ResetAfter: 10 * time.Minute, LimitReset: 10 * time.Minute})
}

func (f *fixture) wantBinding(what string, got, want weir.Decision) {
	f.Helper()
	if got != want {
		f.Errorf("%s:\ngot  %+v\nwant %+v", what, got, want)
	}
}

func decideAlone(f *fixture) {
	ctx := context.Background()
	bucket := f.rule("bucket", weir.TokenBucket{Rate: weir.PerHour(5)})
	alone := map[string]*weir.Rule{
		"a leaky bucket":                f.rule("leaky", weir.LeakyBucket{Rate: weir.PerHour(5), Queue: 4}),
		"a log that counts what denied": f.rule("log", weir.SlidingLog{Rate: weir.PerHour(5), CountDenied: true}),
	}
	for name, rule := range alone {
		for _, requests := range [][]weir.Request{
			{rule.For("k", 1), bucket.For("k", 1)},
			{bucket.For("k", 1), rule.For("k", 1)},
		} {
			_, err := f.engine.Take(ctx, requests...)
			f.wantRequestError("Take of "+name+" beside a bucket", err, "rule")
			_, err = f.engine.Peek(ctx, requests...)
			f.wantRequestError("Peek of "+name+" beside a bucket", err, "rule")
		}
		f.want(name+" alone", f.take(rule.For("k", 1)), true, 4)
	}
	f.wantRemaining("the bucket afterwards", bucket, "k", 5)
}
