package limittest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// reservable returns a rule of each limit that supports reservations.
func (f *fixture) reservable() []*weir.Rule {
	var rules []*weir.Rule
	for _, limit := range everyLimit() {
		if d := weir.Describe(limit); !d.Delays && d.Gap == 0 { // a gap hides the remaining units
			rules = append(rules, f.rule("reserve "+limit.String(), limit))
		}
	}
	return rules
}

func (f *fixture) settle(r *weir.Reservation, actual ...int64) {
	f.Helper()
	if err := r.Settle(context.Background(), actual...); err != nil {
		f.Errorf("Settle(%v): %v", actual, err)
	}
}

func (f *fixture) cancel(r *weir.Reservation) {
	f.Helper()
	if err := r.Cancel(context.Background()); err != nil {
		f.Errorf("Cancel: %v", err)
	}
}

func settles(f *fixture) {
	for _, rule := range f.reservable() {
		r := f.reserve(rule.For("less", 4))
		f.want(rule.String()+": reserve 4 of 5", r.Decision, true, 1)
		f.settle(r, 1)
		f.wantRemaining(rule.String()+": settled at 1", rule, "less", 4)

		f.settle(f.reserve(rule.For("more", 2)), 4)
		f.wantRemaining(rule.String()+": reserved 2, settled at 4", rule, "more", 1)
		f.settle(f.reserve(rule.For("over", 2)), 9)
		f.wantRemaining(rule.String()+": reserved 2, settled over the limit", rule, "over", 0)
		f.want(rule.String()+": a take afterwards", f.peek(rule.For("over", 1)), false, 0)
		f.settle(f.reserve(rule.For("same", 2)), 2)
		f.wantRemaining(rule.String()+": settled at what was reserved", rule, "same", 3)
		f.cancel(f.reserve(rule.For("none", 5)))
		f.wantRemaining(rule.String()+": cancelled", rule, "none", 5)
	}
	f.settleSeveral()
	_, err := f.engine.Reserve(context.Background(), f.rule("leaky", weir.LeakyBucket{Rate: weir.PerHour(5), Queue: 4}).For("k", 1))
	f.wantRequestError("Reserve on a leaky bucket", err, "rule")
}

func (f *fixture) settleSeveral() {
	users := f.rule("users", weir.TokenBucket{Rate: weir.PerHour(5)}, weir.FixedWindow{Rate: weir.PerDay(50)})
	tenants := f.rule("tenants", weir.SlidingLog{Rate: weir.PerHour(9)})
	reserve := func() *weir.Reservation { return f.reserve(users.For("alice", 4), tenants.For("acme", 4)) }

	f.settle(reserve(), 3, 5)
	f.wantRemaining("alice: reserved 4, settled at 3", users, "alice", 2)
	f.wantRemaining("acme: reserved 4, settled at 5", tenants, "acme", 4)

	f.clock.advance(2 * 24 * 3600 * 1e9)
	f.settle(reserve(), 1)
	f.wantRemaining("alice: one number for all", users, "alice", 4)
	f.wantRemaining("acme: one number for all", tenants, "acme", 8)
}

// settlementEndsSlots settles reservations of slots, beside units of another rule and of the same. The numbers that are
// given for the slots are ignored.
func settlementEndsSlots(f *fixture) {
	window, slots := weir.FixedWindow{Rate: weir.PerDay(50)}, weir.Concurrency{Slots: 20, Lease: time.Hour}
	units, held, both := f.rule("units", window), f.rule("held", slots), f.rule("both", window, slots)
	ofBoth, heldOfBoth := f.rule("both", window), f.rule("both", slots)
	for _, c := range []struct {
		actual    []int64
		unitsLeft [3]int64 // of units, and of both with two keys
	}{
		{[]int64{7}, [3]int64{43, 43, 43}},
		{[]int64{7, 1, 10, 12}, [3]int64{43, 40, 38}},
		{[]int64{12, 0, 0, 10}, [3]int64{38, 50, 40}},
		{[]int64{10, 9, 3, 0}, [3]int64{40, 47, 50}},
		{[]int64{0}, [3]int64{50, 50, 50}},
		{nil, [3]int64{40, 40, 40}}, // Done
	} {
		key := fmt.Sprint("settled at ", c.actual)
		r := f.reserve(units.For(key, 10), held.For(key, 2), both.For(key, 10), both.For(key+" too", 10))
		if c.actual != nil {
			f.settle(r, c.actual...)
		} else if err := r.Done(context.Background()); err != nil {
			f.Errorf("Done: %v", err)
		}
		f.wantRemaining("slots "+key, held, key, 20)
		f.wantRemaining("slots of a rule with units "+key, heldOfBoth, key, 20)
		f.wantRemaining("slots of a rule with units "+key, heldOfBoth, key+" too", 20)
		f.wantRemaining("units "+key, units, key, c.unitsLeft[0])
		f.wantRemaining("units of a rule with slots "+key, ofBoth, key, c.unitsLeft[1])
		f.wantRemaining("units of a rule with slots "+key, ofBoth, key+" too", c.unitsLeft[2])
	}
}

// renewsSlots hands reservations over, as to another process, and renews their slots, if the engine can.
func renewsSlots(f *fixture) {
	ctx := context.Background()
	rule := f.rule("held", weir.Concurrency{Slots: 5, Lease: time.Hour})
	renewer, ok := weir.Find[enginekit.Renewer](f.engine)
	if !ok {
		return
	}
	if _, err := renewer.Renew(ctx, weir.Call{Requests: []weir.Request{rule.For("c", 1)}, Lease: 1}); errors.Is(err, errors.ErrUnsupported) {
		return
	}
	renew := func(when string, want bool, slots weir.Call) {
		if held, err := renewer.Renew(ctx, slots); held != want || err != nil {
			f.Errorf("%s: renewed is %v, %v, want %v", when, held, err, want)
		}
	}
	r := f.reserve(rule.For("a", 2), rule.For("b", 1))
	slots := weir.Kit.HandOver(r)
	renew("slots that are held", true, slots)
	renew("slots of another", false, weir.Call{Requests: slots.Requests, Lease: slots.Lease ^ 2})
	f.wantRemaining("after a renewal", rule, "a", 3)
	f.clock.advance(3 * 3600 * 1e9 / 4)
	renew("after three quarters of the lease", true, slots)
	f.clock.advance(3 * 3600 * 1e9 / 4)
	f.wantRemaining("in the lease of the renewal", rule, "a", 3)
	again := weir.Kit.Granted(f.engine, time.Now(), weir.Decision{Allowed: true}, nil, slots)
	if err := again.Done(ctx); err != nil {
		f.Errorf("Done: %v", err)
	}
	f.wantRemaining("after the settlement", rule, "a", 5)
	renew("slots that were released", false, slots)
	f.wantRemaining("after a renewal of nothing", rule, "b", 5)
}

func settledOnce(f *fixture) {
	rule := f.rule("r", weir.FixedWindow{Rate: weir.PerDay(10)})
	r := f.reserve(rule.For("k", 6))
	f.settle(r, 2)
	f.settle(r, 0)
	f.settle(r, 9)
	f.cancel(r)
	f.wantRemaining("after the first of four settlements", rule, "k", 8)

	r = f.reserve(rule.For("k", 6))
	f.cancel(r)
	f.settle(r, 8)
	f.wantRemaining("after a cancel and a settlement", rule, "k", 8)

	r = f.reserve(rule.For("k", 6))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { f.settle(r, 5) })
	}
	all.Wait()
	f.wantRemaining("after 8 settlements at once", rule, "k", 3)
}

func settlesNothing(f *fixture) {
	for _, rule := range f.reservable() {
		f.take(rule.For("k", 3))
		r := f.reserve(rule.For("k", 4))
		if r.Decision.Allowed {
			f.Errorf("%s: reserve 4 where 2 are left: got %+v, want a refusal", rule, r.Decision)
		}
		before := f.peek(rule.For("k", 0))
		f.settle(r, 1)
		f.cancel(r)
		if after := f.peek(rule.For("k", 0)); after != before {
			f.Errorf("%s: settling a refusal wrote: got %+v, want %+v", rule, after, before)
		}
	}
	var none *weir.Reservation
	f.settle(none, 1)
	f.cancel(none)
}

func badSettlement(f *fixture) {
	rule := f.rule("r", weir.FixedWindow{Rate: weir.PerDay(10)})
	r := f.reserve(rule.For("a", 3), rule.For("b", 3))
	for _, actual := range [][]int64{{}, {-1}, {1, -1}, {1, 1, 1}} {
		f.wantRequestError("Settle with bad costs", r.Settle(context.Background(), actual...), "cost")
	}
	f.wantRemaining("after bad settlements", rule, "a", 7)
	f.settle(r, 1)
	f.wantRemaining("after a good one", rule, "a", 9)
}

func settledAfterTheEnd(f *fixture) {
	for _, rule := range f.reservable() {
		ctx, cancel := context.WithCancel(context.Background())
		cancelled, settled := f.reserve(rule.For("k", 1)), f.reserve(rule.For("k", 3))
		cancel()
		if err := cancelled.Cancel(ctx); err != nil {
			f.Errorf("%s: Cancel after the context has ended: %v", rule, err)
		}
		f.wantRemaining(rule.String()+": cancelled after the context has ended", rule, "k", 2)
		if err := settled.Settle(ctx, 2); err != nil {
			f.Errorf("%s: Settle after the context has ended: %v", rule, err)
		}
		f.wantRemaining(rule.String()+": settled after the context has ended", rule, "k", 3)
	}
}
