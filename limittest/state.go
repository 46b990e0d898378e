package limittest

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir"
)

// strangeNames are keys, and rule names where legal, that collide if an engine joins, escapes, normalises or
// truncates them carelessly.
var strangeNames = []string{
	"", "a", "b", "c", "ab", "bc", "a_b", "b_c", "a_b_c", "a:b", "b:c", "a/b", "b/c", "a|b", "b|c", "a b", "b c", "a.b", "a-b", "a,b",
	" ", "a ", " a", "A", "\x00", "\x00\x00", "a\x00", "\x00a", "a\x00b", "b\x00c", "a\x000\x00b", "a\n", "\n", "\r\n", "\t",
	"\xff", "\xfe\xff", "\xc3\x28", "\xc3", "\uFFFD", "é", "e\u0301", "\u00a0", "😀",
	"{a}", "{a", "a}", "{}", "{}a", "{{a}}", "*", "?", "[a]", "\\", "%", "%00", "%s", "\"", "'", "a=b", "0", "00", "1", "-1",
	"token bucket", "token bucket\x000", "fixed window/d", "nil", "null", "\\x00",
	strings.Repeat("k", weir.MaxKey), strings.Repeat("k", weir.MaxKey-1), strings.Repeat("k", weir.MaxKey-1) + "j",
	strings.Repeat("k", 255), strings.Repeat("k", 256), strings.Repeat("k", 257),
}

func namesNeverMeet(f *fixture) {
	var requests []weir.Request
	for _, name := range strangeNames {
		if name == "" || len(name) > 256 || strings.ContainsAny(name, "=\x00") {
			continue
		}
		rule := f.rule(name, weir.FixedWindow{Rate: weir.PerDay(1)})
		for _, key := range strangeNames {
			requests = append(requests, rule.For(key, 1))
		}
	}
	for i, d := range f.each(weir.OpTake, requests) {
		if q := requests[i]; !d.Allowed || d.Rule != q.Rule.Name() || d.Key != q.Key {
			f.Errorf("first take of %s: got %+v, want it admitted: it shares its state with an earlier one", texts([]weir.Request{q}), d)
		}
	}
	for i, d := range f.each(weir.OpTake, requests) {
		if d.Allowed {
			f.Errorf("second take of %s: got it admitted, want a refusal: its state was lost", texts(requests[i:i+1]))
		}
	}
}

func stateOutlivesChange(f *fixture) {
	take := func(what string, limit weir.Limit, cost int64, allowed bool, remaining int64) {
		f.Helper()
		rule := f.rule("plan", limit)
		f.want(what+" under "+limit.String(), f.take(rule.For(what, cost)), allowed, remaining)
	}
	bucket := func(rate weir.Rate, burst int64) weir.Limit { return weir.TokenBucket{Rate: rate, Burst: burst} }
	take("a bucket", bucket(weir.PerSecond(1), 10), 7, true, 3)
	take("a bucket", bucket(weir.PerSecond(1), 20), 0, true, 13)
	take("a bucket", bucket(weir.PerSecond(1), 5), 1, false, 0)
	take("a bucket", bucket(weir.PerSecond(1), 8), 1, true, 0)
	// The bucket keeps the 8 units used under the new rate.
	take("a bucket", bucket(weir.PerSecond(3), 30), 6, true, 16)
	take("a bucket", bucket(weir.PerSecond(7), 100), 0, true, 86)
	take("a bucket", bucket(weir.Per(1, time.Minute), 15), 1, true, 0)
	take("a bucket", bucket(weir.PerSecond(7), 100), 0, true, 85)
	leaky := func(queue int64) weir.Limit { return weir.LeakyBucket{Rate: weir.PerHour(1), Queue: queue} }
	take("a queue", leaky(9), 7, true, 3)
	take("a queue", leaky(19), 0, true, 13)

	for _, kind := range []func(weir.Rate) weir.Limit{
		func(r weir.Rate) weir.Limit { return weir.FixedWindow{Rate: r} },
		func(r weir.Rate) weir.Limit { return weir.FirstWindow{Rate: r} },
		func(r weir.Rate) weir.Limit { return weir.SlidingWindow{Rate: r} },
		func(r weir.Rate) weir.Limit { return weir.SlidingLog{Rate: r} },
	} {
		key := fmt.Sprintf("%T", kind(weir.Rate{}))
		take(key, kind(weir.PerDay(10)), 7, true, 3)
		take(key, kind(weir.PerDay(20)), 0, true, 13)
		take(key, kind(weir.PerDay(9)), 3, false, 2)
	}
}

func anotherState(f *fixture) {
	limits := []weir.Limit{
		weir.FixedWindow{Rate: weir.PerDay(5)}, weir.FixedWindow{Rate: weir.PerHour(5)}, weir.FixedWindow{Rate: weir.Per(5, 48*time.Hour)},
		weir.FirstWindow{Rate: weir.PerDay(5)}, weir.FirstWindow{Rate: weir.PerHour(5)},
		weir.SlidingWindow{Rate: weir.PerDay(5)}, weir.SlidingWindow{Rate: weir.PerHour(5)},
		weir.SlidingLog{Rate: weir.PerDay(5)}, weir.SlidingLog{Rate: weir.PerHour(5)},
		weir.Quota{Count: 5, Unit: weir.Day}, weir.Quota{Count: 5, Unit: weir.Month},
		weir.TokenBucket{Rate: weir.PerDay(5)}, weir.LeakyBucket{Rate: weir.PerDay(1), Queue: 4},
	}
	for _, limit := range limits {
		rule := f.rule("one name", limit)
		f.wantRemaining(limit.String()+" before its first take", rule, "k", 5)
		f.want(limit.String(), f.take(rule.For("k", 5)), true, 0)
	}
	for _, limit := range limits {
		f.wantRemaining(limit.String()+" afterwards", f.rule("one name", limit), "k", 0)
	}
}

func equalLimits(f *fixture) {
	two := f.rule("two", weir.FixedWindow{Rate: weir.PerDay(9)}, weir.FixedWindow{Rate: weir.PerDay(4)},
		weir.TokenBucket{Rate: weir.PerHour(2), Burst: 8}, weir.TokenBucket{Rate: weir.PerDay(2), Burst: 6})
	f.want("2 of 9, 4, 8 and 6", f.take(two.For("k", 2)), true, 2)
	f.wantRemaining("the first window alone", f.rule("two", weir.FixedWindow{Rate: weir.PerDay(9)}), "k", 7)
	f.wantRemaining("the first bucket alone", f.rule("two", weir.TokenBucket{Rate: weir.PerHour(2), Burst: 8}), "k", 6)
	f.want("2 more", f.take(two.For("k", 2)), true, 0)
	f.want("when the second window is full", f.take(two.For("k", 1)), false, 0)
	f.wantRemaining("the first window alone", f.rule("two", weir.FixedWindow{Rate: weir.PerDay(9)}), "k", 5)
}
