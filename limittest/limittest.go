// Package limittest proves that an engine decides as package weir says. An
// engine's whole conformance test is one call of [Run]:
//
//	func TestMyEnginePassesTheSuiteAndItsVectors(t *testing.T) {
//		limittest.Run(t, func(clock func() int64) weir.Engine {
//			return myengine.New(myengine.Options{Clock: clock})
//		})
//	}
//
// The suite plays the embedded vectors, scripts of operations with the exact
// answer to each, and then asks for every promise that vectors do not cover:
// all or nothing, settling, strange keys, changed limits, concurrency. Set
// WEIR_VECTORS to a folder of the same format to play that instead.
//
// [RunVectors], [Play] and [Files] are for what is not an engine and has the
// same answers to give.
package limittest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// Run is the conformance test of an engine. newEngine makes one that has seen
// nothing and decides by the given clock, in nanoseconds since the Unix epoch,
// taken as it is: it stands still between calls, and can run backwards. It is
// called for each subtest and for each scenario of the vectors.
func Run(t *testing.T, newEngine func(clock func() int64) weir.Engine) {
	t.Run("Vectors", func(t *testing.T) { runEngineVectors(t, newEngine) })
	for _, piece := range pieces {
		t.Run(piece.promise, func(t *testing.T) { piece.prove(newFixture(t, newEngine)) })
	}
}

// pieces are the promises beyond the vectors. Each gets an engine of its own.
var pieces = []struct {
	promise string
	prove   func(*fixture)
}{
	{"SeveralRequestsAreTakenAllOrNothing", takenAllOrNothing},
	{"SeveralLimitsAreTakenAllOrNothing", limitsTakenAllOrNothing},
	{"TheSameRuleAndKeyTwiceSumsTheCosts", sameKeyTwice},
	{"TheAnswerToSeveralNamesTheBindingOne", bindingNamed},
	{"LimitsThatDecideAloneAreRefusedTogether", decideAlone},
	{"PeekWritesNothing", peekWritesNothing},
	{"RecordCountsWhatDoesNotFit", recordCounts},
	{"RecordGivesBackButNeverMakesBetterThanFresh", recordGivesBack},
	{"ResetForgetsOneKey", resetForgets},
	{"CostZeroIsAlwaysAllowed", costZero},
	{"CostAboveTheCapacityIsNeverAndNoError", costAboveCapacity},
	{"BadRequestsAreRequestErrorsAndWriteNothing", badRequests},
	{"AContextThatIsDoneIsAnErrorAndTakesNothing", contextDone},
	{"TakeEachAnswersEachRequestAlone", takeEach},
	{"TakeWithinIsTake", takeWithin},
	{"CheckAcceptsEveryLimit", checkAccepts},
	{"SettleGivesBackOrRecordsTheDifference", settles},
	{"AReservationIsSettledOnce", settledOnce},
	{"ARefusedOrNilReservationSettlesNothing", settlesNothing},
	{"ABadSettlementLeavesTheReservationOpen", badSettlement},
	{"AReservationIsSettledAfterItsContextHasEnded", settledAfterTheEnd},
	{"StrangeKeysAndRuleNamesNeverMeet", namesNeverMeet},
	{"StateOutlivesAChangeOfRateAndBurst", stateOutlivesChange},
	{"AnotherPeriodOrAlgorithmIsAnotherState", anotherState},
	{"EqualLimitsOfARuleHaveTheirOwnStates", equalLimits},
	{"ARetryAtRetryAfterIsAdmittedAndNotBefore", retryIsExact},
	{"RemainingIsAdmittedAndOneMoreIsNot", remainingIsExact},
	{"AKeyIsFreshAgainAfterResetAfterAndNotBefore", resetIsExact},
	{"TimeRunningBackwardsAddsNothing", backwardsAddsNothing},
	{"ConcurrentTakesGiveExactTotals", concurrentTotals},
	{"ConcurrentTakesOfSeveralKeysStayTogether", concurrentTogether},
}

// start is when pieces begin: inside every window, at a whole microsecond.
const start = 1_700_000_000_123_456_000

// fixture is an engine under test, with its clock in our hands.
type fixture struct {
	*testing.T
	clock  *virtualClock
	engine weir.Engine
	tick   time.Duration // the least time that the engine can tell
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

// rule makes a rule that must be valid.
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

// peekAfter is a peek d later; the clock is set back afterwards.
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

// want fails if the decision is not allowed as expected, or leaves another
// remaining.
func (f *fixture) want(what string, d weir.Decision, allowed bool, remaining int64) {
	f.Helper()
	if d.Allowed != allowed || d.Remaining != remaining {
		f.Errorf("%s: got allowed %t and %d remaining, want %t and %d (%+v)", what, d.Allowed, d.Remaining, allowed, remaining, d)
	}
}

// wantRemaining fails if cost 0 does not find so much room.
func (f *fixture) wantRemaining(what string, rule *weir.Rule, key string, remaining int64) {
	f.Helper()
	f.want(what, f.peek(rule.For(key, 0)), true, remaining)
}

// wantRequestError fails if err is not a *weir.RequestError about the field.
func (f *fixture) wantRequestError(what string, err error, field string) {
	f.Helper()
	var bad *weir.RequestError
	if !errors.As(err, &bad) || bad.Field != field {
		f.Errorf("%s: got error %v, want a *weir.RequestError about %s", what, err, field)
	}
}
