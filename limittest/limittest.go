// Package limittest tests that an engine makes the decisions that package weir documents. One call of [Run] is a
// complete conformance test:
//
//	func TestMyEnginePassesTheSuiteAndItsVectors(t *testing.T) {
//		limittest.Run(t, func(clock func() int64) weir.Engine {
//			return myengine.New(myengine.Options{Clock: clock})
//		})
//	}
//
// Run plays the embedded vectors: scripts of operations with the exact answer to each. It then tests the promises
// that vectors do not cover: all-or-nothing decisions, settlement, unusual keys, changed limits and concurrency. Set
// WEIR_VECTORS to a folder of the same format to play that folder instead.
//
// [RunTicks] tests an engine with a coarser clock.
package limittest

import (
	"testing"

	"github.com/weirflow/weir"
)

// Run tests an engine. newEngine returns an empty engine that decides by the given clock, in nanoseconds since the
// Unix epoch. The clock stands still between calls and can run backwards; the engine must use its reading unchanged.
// Run calls newEngine once for each subtest and once for each scenario of the vectors.
func Run(t *testing.T, newEngine func(clock func() int64) weir.Engine) {
	t.Run("Vectors", func(t *testing.T) { runEngineVectors(t, newEngine) })
	for _, piece := range pieces {
		t.Run(piece.promise, func(t *testing.T) { piece.prove(newFixture(t, newEngine)) })
	}
}

// pieces are the promises beyond the vectors. Each piece runs on an engine of its own.
var pieces = []struct {
	promise string
	prove   func(*fixture)
}{
	{"SeveralRequestsAreTakenAllOrNothing", takenAllOrNothing},
	{"SeveralLimitsAreTakenAllOrNothing", limitsTakenAllOrNothing},
	{"TheSameRuleAndKeyTwiceSumsTheCosts", sameKeyTwice},
	{"TheAnswerToSeveralNamesTheBindingOne", bindingNamed},
	{"ARefusalNamesItsLimitAndCause", refusalNamed},
	{"LimitsThatDecideAloneAreRefusedTogether", decideAlone},
	{"PeekWritesNothing", peekWritesNothing},
	{"RecordCountsWhatDoesNotFit", recordCounts},
	{"ReturnGivesBackButNeverMakesBetterThanFresh", returnGivesBack},
	{"ResetForgetsOneKey", resetForgets},
	{"CostZeroIsAlwaysAllowed", costZero},
	{"CostAboveTheCapacityIsNeverAndNoError", costAboveCapacity},
	{"BadRequestsAreRequestErrorsAndWriteNothing", badRequests},
	{"AContextThatIsDoneIsAnErrorAndTakesNothing", contextDone},
	{"EachAnswersEachCallAlone", eachOnItsOwn},
	{"EachMakesCallsOfSeveralVerbsInOrder", eachOfSeveralVerbs},
	{"TakeWithinABoundOutlivesItsContext", takeWithin},
	{"TakeUpToTakesWhatFits", takesUpTo},
	{"UnlimitedAdmitsAllAndDenyAllTakesNothing", statelessLimits},
	{"CheckAcceptsEveryLimit", checkAccepts},
	{"SettleGivesBackOrRecordsTheDifference", settles},
	{"ALateSettlementGivesBackOnlyWhatStillCounts", lateSettlement},
	{"AnUndoIsOfItsOwnTake", undoCalls},
	{"RandomSettlementsLeaveWhatTheTrueCostsLeave", randomSettlements},
	{"AFirstWindowIsBegunByItsFirstUnit", firstWindows},
	{"EverySettlementEndsEverySlot", settlementEndsSlots},
	{"AReservationIsSettledOnce", settledOnce},
	{"SlotsAreRenewedWhileTheyAreHeld", renewsSlots},
	{"ARefusedOrNilReservationSettlesNothing", settlesNothing},
	{"ABadSettlementLeavesTheReservationOpen", badSettlement},
	{"AReservationIsSettledAfterItsContextHasEnded", settledAfterTheEnd},
	{"BookedInstantsAreKept", bookedInstants},
	{"TheNewestBookingIsCancelledExactly", newestBooking},
	{"ACancelledBookingThatGivesNothingBackWritesNothing", newestCycle},
	{"ABookingRefusedUnderAFasterRateIsAdmittedAtRetryAfter", raisedBooking},
	{"StrangeKeysAndRuleNamesNeverMeet", namesNeverMeet},
	{"StateOutlivesAChangeOfRateAndBurst", stateOutlivesChange},
	{"AnotherPeriodOrAlgorithmIsAnotherState", anotherState},
	{"EqualLimitsOfARuleHaveTheirOwnStates", equalLimits},
	{"ANegativeCostIsRefusedAsThatFirst", negativeFirst},
	{"ARetryAtRetryAfterIsAdmittedAndNotBefore", retryIsExact},
	{"RemainingIsAdmittedAndOneMoreIsNot", remainingIsExact},
	{"AKeyIsFreshAgainAfterResetAfterAndNotBefore", resetIsExact},
	{"TimeRunningBackwardsAddsNothing", backwardsAddsNothing},
	{"RefusalsCountTowardsABanAsDocumented", refusalsStrike},
	{"EachRuleOfACallCountsItsOwnRefusals", bansOfSeveralRules},
	{"KnockingDoesNotExtendABanAndAResetLiftsIt", bansEnd},
	{"ConcurrentTakesGiveExactTotals", concurrentTotals},
	{"ConcurrentTakesOfSeveralKeysStayTogether", concurrentTogether},
}
