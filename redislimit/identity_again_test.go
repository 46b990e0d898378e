package redislimit

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// The reply to a Reserve is lost, and the caller asks again: it has the slot of the first answer, and nobody else does.
func TestFaultASlotWhoseReplyWasLostCanBeReservedAgain(t *testing.T) {
	server := redistest.Start(t)
	proxy := startProxy(t, server.Addr)
	engine, other := openFor(t, "redis://"+proxy.addr, Options{}), openFor(t, "redis://"+server.Addr, Options{})
	rule := mustRule(t, "r=concurrency 1")
	warmUp(t, engine)
	once := rule.For("k", 1)
	proxy.cut.Store(true)
	if _, err := reserveAs(t.Context(), engine, "once", once); weir.WasCounted(err) == weir.CountedNo {
		t.Fatalf("Reserve whose reply is cut: got %v, want an error that may have counted", err)
	}
	proxy.cut.Store(false)
	var mine *weir.Reservation
	eventually(t, "Reserve again is answered", func() (err error) {
		mine, err = reserveAs(t.Context(), engine, "once", once)
		return err
	})
	if !mine.Decision.Allowed {
		t.Fatalf("Reserve again: %+v, want it admitted", mine.Decision)
	}
	for range 20 { // of which a release in the background would have time to arrive
		if r, err := other.Reserve(t.Context(), rule.For("k", 1)); err != nil || r.Decision.Allowed {
			t.Fatalf("Reserve of a slot that another caller holds: %+v, %v, want a refusal", r.Decision, err)
		}
	}
	if err := mine.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := other.Reserve(t.Context(), rule.For("k", 1)); err != nil || !r.Decision.Allowed {
		t.Errorf("Reserve after Done: %+v, %v, want it admitted", r.Decision, err)
	}
}

// The identity of a decision whose slots were released admits nobody to them again.
func TestAnIdentityWhoseSlotsWereReleasedIsRefused(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	for _, text := range []string{"a=concurrency 3 lease 1h", "b=fixed window 100/300d and concurrency 3 lease 1h"} {
		rule := mustRule(t, text)
		once := rule.For("k", 2)
		for range 2 {
			if r, err := reserveAs(t.Context(), engine, "once", once); err != nil || !r.Decision.Allowed {
				t.Fatalf("%s: Reserve: %+v, %v", text, r, err)
			}
		}
		if err := wantRemaining(engine, rule.For("k", 0), 1); err != nil {
			t.Errorf("%s: after two Reserves with one identity: %v", text, err)
		}
		r, err := reserveAs(t.Context(), engine, "once", once)
		if err == nil {
			err = r.Done(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, ask := range []func() error{
			func() error { _, err := reserveAs(t.Context(), engine, "once", once); return err },
			func() error {
				again := leased(weir.Call{Identity: "once", Requests: []weir.Request{once}})
				again.Op, again.Most = weir.OpTakeUpTo, 1
				_, err := engine.Do(t.Context(), again)
				return err
			},
		} {
			if failed, ok := errors.AsType[*Error](ask()); !ok || failed.Reason != Undone || failed.Counted != weir.CountedNo {
				t.Errorf("%s: asked again after Done: got %v, want an error that the slots were released", text, failed)
			}
		}
		if err := wantRemaining(engine, rule.For("k", 0), 3); err != nil {
			t.Errorf("%s: after Done: %v", text, err)
		}
	}
}

// Each repetition of a TakeUpTo across lanes gets the first answer. Only the first gives the surplus of a lane back.
func TestARepeatedTakeUpToAcrossLanesGivesItsSurplusBackOnce(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{OneSlot: true})
	for _, limit := range everyLimit(10)[2:] {
		rule, err := weir.NewRule(limit.String(), limit)
		if err != nil {
			t.Fatal(err)
		}
		first, later, last := threeLanes(t, engine, rule)
		take := func(key string, n int64) {
			if d, err := engine.Take(t.Context(), rule.For(key, n)); err != nil || !d.Allowed {
				t.Fatalf("%s: Take of %d: %+v, %v", limit, n, d, err)
			}
		}
		take(later.key, 4)
		for i := range 3 {
			times, d, err := upToAs(t.Context(), engine, "x", 10, rule.For(first.key, 1), rule.For(later.key, 1), rule.For(last.key, 1))
			if err != nil || times != 6 || !d.Allowed || d.Remaining != 0 {
				t.Errorf("%s: TakeUpTo, attempt %d: %d times, %+v, %v, want 6 times", limit, i, times, d, err)
			}
			for key, want := range map[string]int64{first.key: 4, later.key: 0, last.key: 4} {
				if err := wantRemaining(engine, rule.For(key, 0), want); err != nil {
					t.Errorf("%s: attempt %d: %q: %v", limit, i, key, err)
				}
			}
		}
	}
}

// A limit changes between a decision and its repetition, which is the same decision nevertheless.
func TestAnIdentityOutlivesAChangeOfTheLimit(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	for i, large := range everyLimit(10) {
		rules := make([]*weir.Rule, 3)
		for j, limit := range []weir.Limit{large, everyLimit(5)[i], everyLimit(20)[i]} {
			var err error
			if rules[j], err = weir.NewRule(fmt.Sprint("r", i), limit); err != nil {
				t.Fatal(err)
			}
		}
		ask := func(what string, verb func(rule *weir.Rule) (weir.Decision, error)) {
			t.Helper()
			first, err := verb(rules[0])
			if err != nil || !first.Allowed {
				t.Fatalf("%s of %s: %+v, %v", what, large, first, err)
			}
			for _, changed := range rules[1:] {
				if d, err := verb(changed); err != nil || !d.Allowed {
					t.Errorf("%s of %s, again as %s: %+v, %v, want the first answer %+v", what, large, changed, d, err, first)
				}
			}
		}
		ask("Take", func(rule *weir.Rule) (weir.Decision, error) {
			return doCall(t.Context(), engine, weir.Call{Op: weir.OpTake, Identity: "take"}, rule.For("k", 4))
		})
		ask("Record", func(rule *weir.Rule) (weir.Decision, error) {
			return doCall(t.Context(), engine, weir.Call{Op: weir.OpRecord, Identity: "record"}, rule.For("k", 3))
		})
		ask("TakeUpTo", func(rule *weir.Rule) (d weir.Decision, err error) {
			times, d, err := upToAs(t.Context(), engine, "up to", 100, rule.For("k", 1))
			if times != 3 {
				t.Errorf("TakeUpTo of %s, as %s: %d times, want 3", large, rule, times)
			}
			return d, err
		})
		if err := wantRemaining(engine, rules[0].For("k", 0), 0); err != nil {
			t.Errorf("%s: 4, 3 and the rest were taken: %v", large, err)
		}
	}
}

// A release with an identity signals waiting callers, too.
func TestAReleaseWithAnIdentitySignals(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	rule := mustRule(t, "r=concurrency 1 lease 1h")
	held, err := reserveAs(t.Context(), engine, "x", rule.For("k", 1))
	if err != nil || !held.Decision.Allowed {
		t.Fatalf("Reserve: %+v, %v", held, err)
	}
	heard := make(chan bool, 10)
	hears, stop := engine.Listen(rule.For("k", 1), func() { heard <- true })
	defer stop()
	eventually(t, "the engine hears its signals", func() error {
		if !hears() {
			return errors.New("not yet")
		}
		return nil
	})
	<-heard // the channel works
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-heard
}

// A cancelled booking comes before a repeated decision in one call: the script reads each by its own parameters.
func TestARepeatedDecisionBehindACancelledBookingKeepsItsAnswer(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	booked := mustRule(t, "b=token bucket 1/h burst 2")
	both := mustRule(t, "r=token bucket 10/300d and concurrency 3 lease 1h")
	once := leased(weir.Call{Identity: "once", Requests: []weir.Request{both.For("k", 2)}})
	if a, err := engine.Do(t.Context(), once); err != nil || !a.Decision.Allowed {
		t.Fatalf("Take: %+v, %v", a.Decision, err)
	}
	decisionOn := func(q weir.Request, lease uint64, o wire.Op) *calls.Submission {
		parts, at, err := engine.parts(nil, []weir.Request{q}, lease)
		if err != nil {
			t.Fatal(err)
		}
		s := calls.NewSubmission()
		s.One[0] = asking(o, 1, parts, at)
		s.Decisions = s.One[:]
		return s
	}
	book := decisionOn(booked.For("k", 1), 0, wire.OpBook)
	if engine.calls.Run([]*calls.Submission{book}); book.Err != nil || !book.One[0].Admitted {
		t.Fatalf("booking: %+v", book.One[0])
	}
	cancel := decisionOn(booked.For("k", 1), 0, wire.OpTake)
	cancel.One[0] = book.One[0].Withdrawal(1)
	again := decisionOn(once.Requests[0], once.Lease, wire.OpTake)
	again.One[0].Identify(&engine.keys, "once")
	engine.calls.Run([]*calls.Submission{cancel, again})
	for what, s := range map[string]*calls.Submission{"the cancelled booking": cancel, "the repeated take": again} {
		if d := &s.One[0]; s.Err != nil || d.Err != nil || !d.Admitted {
			t.Errorf("%s: admitted %t, %v, %v", what, d.Admitted, s.Err, d.Err)
		}
	}
	if !again.One[0].Again {
		t.Error("the repeated take was decided anew")
	}
	if err := wantRemaining(engine, both.For("k", 0), 1); err != nil {
		t.Error(err)
	}
}
