package redislimit_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// A smaller limit, and what is recorded under it, drops no entry that counts: the answers are those of the memory
// engine, however the limits take turns.
func TestALogChangesItsLimitAndDropsNothing(t *testing.T) {
	t.Parallel()
	now := int64(1_700_000_000_000_000) // us
	clock := func() int64 { return now * 1000 }
	redis := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{Clock: clock})
	memory := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	counts := []int64{100, 10, 3, 40}
	for name, of := range map[string]func(n int64) weir.Limit{
		"log":               func(n int64) weir.Limit { return weir.SlidingLog{Rate: weir.PerMinute(n)} },
		"log with a gap":    func(n int64) weir.Limit { return weir.SlidingLog{Rate: weir.PerMinute(n), Gap: time.Second / 10} },
		"log with refusals": func(n int64) weir.Limit { return weir.SlidingLog{Rate: weir.PerMinute(n), CountDenied: true} },
		"log that begins to count refusals": func(n int64) weir.Limit {
			return weir.SlidingLog{Rate: weir.PerMinute(n), CountDenied: n == 10}
		},
		"long log": func(n int64) weir.Limit { return weir.SlidingLog{Rate: weir.PerHour(n)} },
		"gate":     func(n int64) weir.Limit { return weir.RateGate{Rate: weir.PerMinute(n)} },
	} {
		var rules []*weir.Rule
		for _, n := range counts {
			rules = append(rules, newRule(t, name, of(n)))
		}
		ask := func(what string, verb func(weir.Engine) (weir.Decision, error)) (want weir.Decision) {
			t.Helper()
			want, err := verb(memory)
			if err != nil {
				t.Fatalf("%s: memory: %v", name, err)
			}
			if got, err := verb(redis); err != nil || got != want {
				t.Fatalf("%s: %s:\ngot  %+v (%v)\nwant %+v", name, what, got, err, want)
			}
			return want
		}
		take := func(rule *weir.Rule, key string) func(weir.Engine) (weir.Decision, error) {
			return func(e weir.Engine) (weir.Decision, error) { return e.Take(t.Context(), rule.For(key, 1)) }
		}
		for i := range 130 {
			if name == "log with a gap" {
				now += int64(time.Second / time.Microsecond / 10)
			}
			rule := rules[0]
			if i >= 100 {
				rule = rules[1]
			}
			ask("100 under 100, then 30 under 10", take(rule, "k"))
			now++
		}
		if d := ask("under 100 again", take(rules[0], "k")); d.Allowed {
			t.Errorf("%s: 100 of 100 were taken, then the limit was 10 for a while, and one more is admitted", name)
		}

		r := rand.New(rand.NewPCG(1, 1))
		for step := range randtest.Rounds(t, 4000, 1333) {
			now += r.Int64N(2_000_000) * r.Int64N(2)
			if r.IntN(100) == 0 {
				now += 70_000_000
			}
			q := rules[r.IntN(len(rules))].For(fmt.Sprint(r.IntN(2)), 1+r.Int64N(4)*r.Int64N(2))
			verb := weir.Engine.Take
			switch r.IntN(8) {
			case 0:
				verb = weir.Engine.Peek
			case 1, 2:
				verb = weir.Engine.Record
			case 3:
				q.Cost, verb = []int64{-1, -7, 60, 70_000, 1 << 40, math.MaxInt64}[min(r.IntN(40), 5)], weir.Engine.Record
				if q.Cost == math.MaxInt64 && r.IntN(10) > 0 {
					q.Cost = -3
				}
				if q.Cost < 0 {
					q.Cost, verb = -q.Cost, weir.Engine.Return
				}
			}
			ask(fmt.Sprintf("step %d, cost %d of %v", step, q.Cost, q.Rule), func(e weir.Engine) (weir.Decision, error) { return verb(e, t.Context(), q) })
		}
	}
}

// A record that would leave too many entries is refused with all of its call. It counts nothing.
func TestARecordThatAStateHasNoSpaceForIsRefused(t *testing.T) {
	const limit, extra = 10, 512
	now := int64(1_700_000_000_000_000) // us
	redis := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{Clock: func() int64 { return now * 1000 }})
	window := newRule(t, "window", weir.FixedWindow{Rate: weir.PerDay(1000)})
	for name, of := range map[string]func(n int64) weir.Limit{
		"log":  func(n int64) weir.Limit { return weir.SlidingLog{Rate: weir.PerHour(n)} },
		"gate": func(n int64) weir.Limit { return weir.RateGate{Rate: weir.PerHour(n)} },
	} {
		rule, larger := newRule(t, name, of(limit)), newRule(t, name, of(2000))
		for i := range limit + extra {
			now++
			if d, err := redis.Record(t.Context(), rule.For("k", 1)); err != nil || d.Unrecorded || i > limit && d.RetryAfter == weir.Never {
				t.Fatalf("%s: record %d of %d: got %+v and %v", name, i+1, limit+extra, d, err)
			}
		}
		now++
		before := redis.Stats().Unrecorded
		for _, requests := range [][]weir.Request{{rule.For("k", 1)}, {window.For(name, 1), rule.For("k", 1)}, {rule.For("other", 1), rule.For("k", 1)}} {
			d, err := redis.Record(t.Context(), requests...)
			if err != nil || d.Allowed || !d.Unrecorded || d.RetryAfter != weir.Never || d.Rule != name || d.Key != "k" {
				t.Errorf("%s: a record with %d requests above the bound: got %+v and %v, want a refusal", name, len(requests), d, err)
			}
		}
		for _, q := range []struct {
			weir.Request
			want int64
		}{{larger.For("k", 0), 2000 - limit - extra}, {window.For(name, 0), 1000}, {rule.For("other", 0), limit}} {
			if d, err := redis.Peek(t.Context(), q.Request); err != nil || d.Remaining != q.want {
				t.Errorf("%s: %v has %d left (%v), want %d", name, q.Rule, d.Remaining, err, q.want)
			}
		}
		if got, want := redis.Stats().Unrecorded, before+3; got != want {
			t.Errorf("%s: Stats count %d refused records, want %d", name, got, want)
		}
		settleWithoutSpace(t, redis, rule, func() { now++ })
		if d, err := redis.Record(t.Context(), rule.For("k", 1<<30)); err != nil || d.RetryAfter == 0 {
			t.Errorf("%s: a record of many units is %+v and %v", name, d, err)
		}
		now += int64(time.Hour / time.Microsecond)
		if d, err := redis.Record(t.Context(), rule.For("k", 1)); err != nil || !d.Allowed {
			t.Errorf("%s: a record after the entries have left: got %+v and %v", name, d, err)
		}
	}
}

// settleWithoutSpace settles units above the reserved ones when a log has no space for them: alone, beside slots, and beside
// units of another limit. The log records nothing, and the slots are released all the same.
func settleWithoutSpace(t *testing.T, e *redislimit.Engine, rule *weir.Rule, tick func()) {
	t.Helper()
	slots := newRule(t, "slots", weir.Concurrency{Slots: 5})
	reserve := func(requests ...weir.Request) *weir.Reservation {
		t.Helper()
		r, err := e.Reserve(t.Context(), requests...)
		if err != nil || !r.Decision.Allowed {
			t.Fatalf("Reserve under %v: %+v, %v", rule, r, err)
		}
		return r
	}
	window := newRule(t, "window", weir.FixedWindow{Rate: weir.PerDay(1000)})
	alone, beside := reserve(rule.For("s", 1)), reserve(rule.For("s", 1), slots.For(rule.Name(), 2))
	several := reserve(rule.For("s", 1), slots.For(rule.Name(), 2), window.For("s", 1))
	for full := false; !full; {
		tick()
		d, err := e.Record(t.Context(), rule.For("s", 1))
		if full = d.Unrecorded; err != nil {
			t.Fatal(err)
		}
	}
	tick()
	if err := several.Settle(t.Context(), 4, 0, 2); err == nil || weir.WasCounted(err) != weir.CountedUnknown || !strings.Contains(err.Error(), `of 3 for key "s"`) {
		t.Errorf("Settle of 4 of one unit of %v beside another limit: got %v, want an error that names 3 units", rule, err)
	}
	for _, r := range []*weir.Reservation{alone, beside} {
		if err := r.Settle(t.Context(), 4); weir.WasCounted(err) != weir.CountedNo || !errors.Is(err, weir.ErrRequest) {
			t.Errorf("Settle of 4 of one unit of %v: got %v, want an error that is not counted", rule, err)
		}
	}
	for e.Stats().Held > 0 {
		time.Sleep(time.Millisecond)
	}
	if d, err := e.Peek(t.Context(), slots.For(rule.Name(), 0)); err != nil || d.Remaining != 5 {
		t.Errorf("after a settlement that %v has no space for, %d of 5 slots are free (%v)", rule, d.Remaining, err)
	}
}
