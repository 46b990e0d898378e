package limittest

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// refusalsThatCount are calls on a key with no units left, and how many strikes each counts towards the ban of the rule.
var refusalsThatCount = []struct {
	what    string
	strikes int64
	call    func(f *fixture, q weir.Request)
}{
	{"a take", 1, func(f *fixture, q weir.Request) { f.take(q) }},
	{"two takes", 2, func(f *fixture, q weir.Request) { f.take(q); f.take(q) }},
	{"a take of the same key twice", 1, func(f *fixture, q weir.Request) { f.take(q, q) }},
	{"a batch of three takes", 3, func(f *fixture, q weir.Request) { f.each(weir.OpTake, []weir.Request{q, q, q}) }},
	{"a take up to 5 times", 1, func(f *fixture, q weir.Request) { f.takeUpTo(5, q) }},
	{"a reservation", 1, func(f *fixture, q weir.Request) { f.reserve(q) }},
	{"a take with another rule that admits", 1, func(f *fixture, q weir.Request) { f.take(f.rule("free", weir.Unlimited{}).For("k", 1), q) }},
	{"a peek", 0, func(f *fixture, q weir.Request) { f.peek(q) }},
	{"a peek in a batch", 0, func(f *fixture, q weir.Request) { f.each(weir.OpPeek, []weir.Request{q}) }},
	{"a record and a return", 0, func(f *fixture, q weir.Request) { f.record(q); f.giveBack(q) }},
	{"a take up to 0 times", 0, func(f *fixture, q weir.Request) { f.takeUpTo(0, q) }},
	{"a cost of 0", 0, func(f *fixture, q weir.Request) { q.Cost = 0; f.take(q) }},
	{"a cost that can never be admitted", 0, func(f *fixture, q weir.Request) { q.Cost = 4; f.take(q); f.takeUpTo(2, q) }},
	{"a caller that waits", 0, func(f *fixture, q weir.Request) {
		_, err := f.engine.Do(context.Background(), weir.Call{Op: weir.OpTake, Requests: []weir.Request{q}, Waits: true})
		f.decided("a take that waits", []weir.Request{q}, err)
	}},
	{"a batch of a caller that waits", 0, func(f *fixture, q weir.Request) {
		calls, results := []weir.Call{{Op: weir.OpTake, Requests: []weir.Request{q}, Waits: true}}, make([]weir.Result, 1)
		f.decided("Each", calls[0].Requests, f.engine.Each(context.Background(), calls, results))
	}},
}

// refusalsStrike tests that calls are as many strikes as documented: with one more, the next take begins a ban.
func refusalsStrike(f *fixture) {
	for i, c := range refusalsThatCount {
		for more := range int64(2) {
			ban := weir.Ban{After: c.strikes + 1 + more, Within: time.Hour, For: 48 * time.Hour}
			q := f.rule(fmt.Sprint("r", i, more), weir.FixedWindow{Rate: weir.PerDay(3)}, ban).For("k", 1)
			f.record(q.Rule.For("k", 3))
			c.call(f, q)
			d := f.take(q)
			if begun := more == 0; d.Allowed || d.BanBegun != begun || (d.Cause == weir.ByBan) != begun {
				f.Errorf("%s: then a take under %s got %+v, want a ban %t", c.what, ban, d, begun)
			}
		}
	}
}

// bansOfSeveralRules tests that each rule of a call counts its own refusals, in any order, and one that would admit its own part
// none, also while another is banned.
func bansOfSeveralRules(f *fixture) {
	ban := weir.Ban{After: 2, Within: time.Hour, For: 48 * time.Hour}
	a, b, c := f.rule("a", weir.FixedWindow{Rate: weir.PerDay(1)}, ban), f.rule("b", ban, weir.SlidingLog{Rate: weir.PerDay(1)}), f.rule("c", weir.TokenBucket{Rate: weir.PerDay(9)}, ban)
	all := []weir.Request{a.For("k", 1), b.For("k", 1), c.For("k", 1)}
	f.record(a.For("k", 1), b.For("k", 1))
	f.take(all...)
	if d := f.take(all[0]); d.Cause != weir.ByBan || !d.BanBegun || d.RefusedBy != 1 || d.LimitIndex != 0 || d.Limit != 1 || d.RetryAfter != 48*time.Hour {
		f.Errorf("the second refusal of a: got %+v, want a ban by limit 1 beside limit 0", d)
	}
	if d := f.take(all...); d.Cause != weir.ByBan || d.RetryAfter != 48*time.Hour || d.Remaining != 0 {
		f.Errorf("the second refusal of b, while a is banned: got %+v, want a ban", d)
	}
	if d := f.take(all[1]); d.Cause != weir.ByBan || d.BanBegun || d.RefusedBy != 0 || d.LimitIndex != 1 {
		f.Errorf("b: got %+v, want that it is banned by limit 0 beside limit 1", d)
	}
	f.want("c, which refused nothing", f.take(all[2]), true, 8)
}

// bansEnd tests that attempts do not extend a ban, that returned units do not lift it, and that a Reset does.
func bansEnd(f *fixture) {
	rule := f.rule("r", weir.Concurrency{Slots: 1, Lease: time.Minute}, weir.Ban{After: 1, Within: time.Hour, For: time.Hour})
	held := f.reserve(rule.For("k", 1))
	f.take(rule.For("k", 1))
	if err := held.Done(context.Background()); err != nil {
		f.Fatalf("Done: %v", err)
	}
	for range 3 {
		f.clock.advance(10 * time.Minute)
		if d := f.take(rule.For("k", 1)); d.Cause != weir.ByBan {
			f.Errorf("a slot that came free: got %+v, want a ban", d)
		}
	}
	if d := f.peek(rule.For("k", 1)); d.RetryAfter != 30*time.Minute {
		f.Errorf("after knocks: got %+v, want a ban for 30 more minutes", d)
	}
	f.want("another key", f.peek(rule.For("other", 1)), true, 1)
	f.clock.advance(30*time.Minute - f.tick)
	if d := f.peek(rule.For("k", 1)); d.RetryAfter != f.tick {
		f.Errorf("a tick before its end: got %+v, want a ban", d)
	}
	f.clock.advance(f.tick)
	f.want("at its end", f.peek(rule.For("k", 1)), true, 1)
	f.take(rule.For("k", 1))
	f.take(rule.For("k", 1))
	if err := f.engine.Reset(context.Background(), rule.For("k", 1)); err != nil {
		f.Fatalf("Reset: %v", err)
	}
	f.want("after a reset", f.peek(rule.For("k", 1)), true, 1)
}
