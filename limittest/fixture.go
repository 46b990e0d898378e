package limittest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// start is when pieces begin. It lies within every window, at a whole microsecond.
const start = 1_700_000_000_123_456_000

// fixture is an engine under test and the clock that drives it.
type fixture struct {
	*testing.T
	clock  *virtualClock
	engine weir.Engine
	tick   time.Duration // the finest time that the engine distinguishes
}

// virtualClock stands still until it is set.
type virtualClock struct{ nanos atomic.Int64 }

func (c *virtualClock) set(nanos int64)         { c.nanos.Store(nanos) }
func (c *virtualClock) now() int64              { return c.nanos.Load() }
func (c *virtualClock) advance(d time.Duration) { c.nanos.Add(int64(d)) }
func (c *virtualClock) at(d time.Duration) (undo func()) {
	before := c.now()
	c.advance(d)
	return func() { c.set(before) }
}

func newFixture(t *testing.T, newEngine func(clock func() int64) weir.Engine) *fixture {
	t.Helper()
	f := &fixture{T: t, clock: &virtualClock{}, tick: time.Nanosecond}
	f.clock.set(start)
	f.engine = newEngine(f.clock.now)
	return f
}

// rule returns a rule and fails the test if its limits are invalid.
func (f *fixture) rule(name string, limits ...weir.Limit) *weir.Rule {
	f.Helper()
	rule, err := weir.NewRule(name, limits...)
	if err != nil {
		f.Fatalf("NewRule(%q, %v): %v", name, limits, err)
	}
	return rule
}

func (f *fixture) take(requests ...weir.Request) weir.Decision {
	f.Helper()
	d, err := f.engine.Take(context.Background(), requests...)
	f.decided("Take", requests, err)
	return d
}

func (f *fixture) peek(requests ...weir.Request) weir.Decision {
	f.Helper()
	d, err := f.engine.Peek(context.Background(), requests...)
	f.decided("Peek", requests, err)
	return d
}

// each makes a call for each of many requests, in batches: a trip to a server for each would take the most time.
func (f *fixture) each(op weir.Op, requests []weir.Request) (all []weir.Decision) {
	f.Helper()
	for some := range slices.Chunk(requests, weir.MaxRequests) {
		calls, results := make([]weir.Call, len(some)), make([]weir.Result, len(some))
		for i := range some {
			calls[i] = weir.Call{Op: op, Requests: some[i : i+1]}
		}
		f.decided("Each", some, f.engine.Each(context.Background(), calls, results))
		for i, r := range results {
			f.decided("a call of Each", calls[i].Requests, r.Err)
			all = append(all, r.Decision)
		}
	}
	return all
}

// peekAfter returns a peek made d later, then sets the clock back.
func (f *fixture) peekAfter(d time.Duration, requests ...weir.Request) weir.Decision {
	f.Helper()
	defer f.clock.at(d)()
	return f.peek(requests...)
}

func (f *fixture) record(requests ...weir.Request) weir.Decision {
	f.Helper()
	d, err := f.engine.Record(context.Background(), requests...)
	f.decided("Record", requests, err)
	return d
}

func (f *fixture) giveBack(requests ...weir.Request) weir.Decision {
	f.Helper()
	d, err := f.engine.Return(context.Background(), requests...)
	f.decided("Return", requests, err)
	return d
}

func (f *fixture) reserve(requests ...weir.Request) *weir.Reservation {
	f.Helper()
	r, err := f.engine.Reserve(context.Background(), requests...)
	f.decided("Reserve", requests, err)
	if r == nil {
		f.Fatalf("Reserve(%s): got a nil handle without an error", texts(requests))
	}
	return r
}

func (f *fixture) decided(verb string, requests []weir.Request, err error) {
	f.Helper()
	if err != nil {
		f.Fatalf("%s(%s): could not decide: %v", verb, texts(requests), err)
	}
}

// want fails the test unless the decision is allowed or refused as expected and leaves the expected units.
func (f *fixture) want(what string, d weir.Decision, allowed bool, remaining int64) {
	f.Helper()
	if d.Allowed != allowed || d.Remaining != remaining {
		f.Errorf("%s: got allowed %t and %d remaining, want %t and %d (%+v)", what, d.Allowed, d.Remaining, allowed, remaining, d)
	}
}

// wantRemaining fails the test unless a take of cost 0 finds the expected units.
func (f *fixture) wantRemaining(what string, rule *weir.Rule, key string, remaining int64) {
	f.Helper()
	f.want(what, f.peek(rule.For(key, 0)), true, remaining)
}

// wantRequestError fails the test unless err is a *weir.RequestError about the field.
func (f *fixture) wantRequestError(what string, err error, field string) {
	f.Helper()
	var bad *weir.RequestError
	if !errors.As(err, &bad) || bad.Field != field {
		f.Errorf("%s: got error %v, want a *weir.RequestError about %s", what, err, field)
	}
}
