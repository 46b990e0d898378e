package weir_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// failing is a memory engine whose next calls fail, either before or after they are counted.
type failing struct {
	weir.Engine
	mu       sync.Mutex
	failures []failure
	records  int
	onRecord func() // or nil
}

type failure struct {
	none    bool // the call does not fail
	counted bool // the call was counted although it failed
	certain bool // the error says whether it was
}

func (f failure) Error() string { return "the reply was lost" }
func (f failure) WasCounted() weir.Counted {
	switch {
	case !f.certain:
		return weir.CountedUnknown
	case f.counted:
		return weir.CountedYes
	}
	return weir.CountedNo
}

var (
	notCounted     = failure{certain: true}
	lostBefore     = failure{}
	lostAfterwards = failure{counted: true}
	noFailure      = failure{none: true}
)

func newFailing() *failing {
	f := &failing{}
	f.Engine = around(weir.NewMemory(weir.MemoryOptions{}), f.do)
	return f
}

// around returns an engine whose calls do makes with memory, and whose reservations are takes of do.
func around(memory *weir.Memory, do func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error)) (e weir.Engine) {
	e = weir.Kit.EngineOf(func(ctx context.Context, c weir.Call) (weir.Answer, error) {
		if c.Op == weir.OpReserve {
			return weir.Kit.Reserve(ctx, e, c)
		}
		return do(ctx, c, memory.Do)
	}, memory.Check)
	return e
}

func (f *failing) next(op weir.Op) (failure, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if op != weir.OpTake {
		f.records++
	}
	if len(f.failures) == 0 {
		return failure{}, false
	}
	next := f.failures[0]
	f.failures = f.failures[1:]
	return next, !next.none
}

func (f *failing) do(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
	if c.Op == weir.OpPeek {
		return next(ctx, c)
	}
	if c.Op != weir.OpTake && f.onRecord != nil {
		f.onRecord()
	}
	failure, fails := f.next(c.Op)
	if fails && !failure.counted {
		return weir.Answer{}, failure
	}
	a, err := next(ctx, c)
	if fails {
		return weir.Answer{}, failure
	}
	return a, err
}

func (f *failing) reserve(t *testing.T, requests ...weir.Request) *weir.Reservation {
	t.Helper()
	r, err := f.Reserve(t.Context(), requests...)
	if err != nil || !r.Decision.Allowed {
		t.Fatalf("Reserve: got %+v and error %v, want it allowed", r, err)
	}
	return r
}

func (f *failing) wantLeft(t *testing.T, when string, rule *weir.Rule, want int64) {
	t.Helper()
	d, err := f.Peek(t.Context(), rule.For("k", 0))
	if err != nil || d.Remaining != want {
		t.Errorf("%s: %s has %d left and error %v, want %d", when, rule, d.Remaining, err, want)
	}
}

func wantFailure(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.As(err, new(failure)) {
		t.Errorf("%s: got error %v, want that of the engine", what, err)
	}
}

func TestASettlementThatWasNotCountedCanBeTriedAgain(t *testing.T) {
	for limit, want := range map[weir.Limit]int64{weir.Concurrency{Slots: 5}: 5, weir.TokenBucket{Rate: weir.PerDay(5)}: 3} {
		rule := mustRule(t, "r", limit)
		f := newFailing()
		r := f.reserve(t, rule.For("k", 3))
		f.failures = []failure{notCounted, notCounted}
		wantFailure(t, "Settle", r.Settle(t.Context(), 1))
		wantFailure(t, "Cancel", r.Cancel(t.Context()))
		f.wantLeft(t, "after two failures", rule, 2)
		if err := r.Settle(t.Context(), 2); err != nil {
			t.Errorf("%s: the third: %v", limit, err)
		}
		f.wantLeft(t, "after the first success", rule, want)
		if err := r.Cancel(t.Context()); err != nil || f.records != 3 {
			t.Errorf("%s: after the success: error %v and %d calls in all, want none after the third", limit, err, f.records)
		}
		f.wantLeft(t, "after a late cancel", rule, want)
	}
}

// A settlement that a log has no space for is an error that names the units which were not recorded. It counts nothing, so
// it can be tried again.
func TestASettlementThatIsNotRecordedIsAnError(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
	for _, limit := range []weir.Limit{weir.SlidingLog{Rate: weir.PerHour(10)}, weir.RateGate{Rate: weir.PerHour(10)}} {
		rule, slots := mustRule(t, limit.String(), limit), mustRule(t, "slots "+limit.String(), weir.Concurrency{Slots: 5})
		r, err := engine.Reserve(t.Context(), rule.For("k", 2))
		if err != nil || !r.Decision.Allowed {
			t.Fatalf("%v: Reserve: %+v, %v", limit, r, err)
		}
		both, err := engine.Reserve(t.Context(), slots.For("k", 3), rule.For("k", 1), rule.For("other", 1))
		if err != nil || !both.Decision.Allowed {
			t.Fatalf("%v: Reserve: %+v, %v", limit, both, err)
		}
		lim := mustNew(t, limit, weir.Options{Clock: func() int64 { return now }})
		inProcess, err := lim.Reserve(2, 0)
		if err != nil {
			t.Fatal(err)
		}
		for range 1 << 17 {
			now++
			lim.Record(1)
		}
		if err := inProcess.Settle(t.Context(), 7); !errors.Is(err, weir.ErrRequest) || !strings.Contains(err.Error(), "cost of 5 beyond") {
			t.Errorf("%v: Settle of 7 of 2 units in process without space: got %v, want an error that names 5 units", limit, err)
		}
		full := false
		for i := 0; i < 1<<17 && !full; i++ {
			now++
			d, err := engine.Record(t.Context(), rule.For("k", 1))
			if full = d.Unrecorded; err != nil {
				t.Fatal(err)
			}
		}
		now++
		err = r.Settle(t.Context(), 7)
		if bad, ok := errors.AsType[*weir.RequestError](err); !ok || bad.Op != "settle" || bad.Rule != rule.Name() || !strings.Contains(bad.Reason, `of 5 for key "k"`) {
			t.Errorf("%v: Settle of 7 of 2 reserved units without space: got %v, want an error that names 5 units", limit, err)
		}
		err = both.Settle(t.Context(), 0, 4, 4)
		if err == nil || weir.WasCounted(err) != weir.CountedUnknown || !strings.Contains(err.Error(), `of 3 for key "k"`) {
			t.Errorf("%v: Settle of slots and units without space: got %v, want an error that names 3 units and counts perhaps", limit, err)
		}
		if d, err := engine.Peek(t.Context(), slots.For("k", 0)); err != nil || d.Remaining != 5 {
			t.Errorf("%v: after the failed Settle %d of 5 slots are free (%v)", limit, d.Remaining, err)
		}
		if err := both.Done(t.Context()); err != nil {
			t.Errorf("%v: Done afterwards: %v", limit, err)
		}
		now += int64(2 * time.Hour)
		if err := r.Settle(t.Context(), 7); err != nil {
			t.Errorf("%v: Settle after the entries have left: %v", limit, err)
		}
		if d, err := engine.Peek(t.Context(), rule.For("k", 0)); err != nil || d.Remaining != 5 {
			t.Errorf("%v: then %d of 10 units are left (%v), want 5", limit, d.Remaining, err)
		}
	}
}

func TestUnitsWhoseSettlementIsUnknownStaySpent(t *testing.T) {
	for _, lost := range []failure{lostBefore, lostAfterwards} {
		rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerDay(5)})
		f := newFailing()
		r := f.reserve(t, rule.For("k", 3))
		f.failures = []failure{lost}
		wantFailure(t, "Cancel", r.Cancel(t.Context()))
		left := map[bool]int64{false: 2, true: 5}[lost.counted]
		for range 3 {
			if err := r.Cancel(t.Context()); err != nil {
				t.Errorf("another Cancel: %v", err)
			}
		}
		f.wantLeft(t, "given back once or never", rule, left)
	}
}

// Slots are released before other units come back, so an unknown release leaves the units to be settled.
func TestSlotsWhoseReleaseIsUnknownAreReleasedAgainBeforeUnitsComeBack(t *testing.T) {
	both := mustRule(t, "both", weir.TokenBucket{Rate: weir.PerDay(9)}, weir.Concurrency{Slots: 5})
	rate := mustRule(t, "rate", weir.FixedWindow{Rate: weir.PerDay(9)})
	bucket := mustRule(t, "both", weir.TokenBucket{Rate: weir.PerDay(9)})
	slots := mustRule(t, "both", weir.Concurrency{Slots: 5})
	for _, lost := range []failure{lostBefore, lostAfterwards} {
		f := newFailing()
		f.reserve(t, slots.For("k", 1)) // another caller
		r := f.reserve(t, rate.For("k", 2), both.For("k", 2))
		f.failures = []failure{lost, lost, notCounted}
		for range 3 {
			wantFailure(t, "Cancel", r.Cancel(t.Context()))
		}
		for range 2 {
			if err := r.Cancel(t.Context()); err != nil {
				t.Errorf("Cancel at last: %v", err)
			}
		}
		f.wantLeft(t, "at last", slots, 4)
		f.wantLeft(t, "at last", bucket, 9)
		f.wantLeft(t, "at last", rate, 9)
	}
}

func TestSlotsOfAReservationWhoseReplyWasLostAreReleased(t *testing.T) {
	slots := mustRule(t, "slots", weir.Concurrency{Slots: 1})
	rate := mustRule(t, "rate", weir.FixedWindow{Rate: weir.PerDay(9)})
	for _, lost := range []failure{lostBefore, lostAfterwards} {
		f := newFailing()
		f.failures = []failure{lost}
		r, err := f.Reserve(t.Context(), slots.For("k", 1), rate.For("k", 2))
		wantFailure(t, "Reserve", err)
		if err := r.Cancel(t.Context()); err != nil {
			t.Errorf("Cancel: %v", err)
		}
		f.wantLeft(t, "after the cancel", slots, 1)
		f.wantLeft(t, "after the cancel", rate, map[bool]int64{false: 9, true: 7}[lost.counted])
	}
	f := newFailing()
	f.failures = []failure{lostAfterwards, notCounted}
	if r, err := f.Reserve(t.Context(), rate.For("k", 2)); err == nil || r != nil {
		t.Errorf("Reserve without slots: got %v and error %v, want no handle", r, err)
	}
	if r, err := f.Reserve(t.Context(), slots.For("k", 1)); err == nil || r != nil {
		t.Errorf("Reserve that was not counted: got %v and error %v, want no handle", r, err)
	}
}

func TestASettlementAfterItsContextTakesASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := mustRule(t, "r", weir.Concurrency{Slots: 1})
		hangs := true
		h := around(weir.NewMemory(weir.MemoryOptions{}), func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
			if hangs && c.Op != weir.OpTake && c.Op != weir.OpPeek {
				<-ctx.Done()
			}
			return next(ctx, c)
		})
		r, err := h.Reserve(t.Context(), rule.For("k", 1))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if err := r.Cancel(ctx); err == nil || time.Since(start) != time.Minute+time.Second {
			t.Errorf("Cancel of an engine that hangs: %v after %v, want an error after 1m1s", err, time.Since(start))
		}
		if err := r.Cancel(ctx); err == nil || time.Since(start) != time.Minute+2*time.Second {
			t.Errorf("Cancel after the context has ended: %v after %v, want an error a second later", err, time.Since(start))
		}
		hangs = false
		if err := r.Cancel(ctx); err != nil {
			t.Errorf("Cancel when the engine answers again: %v", err)
		}
		if d, err := h.Peek(t.Context(), rule.For("k", 1)); err != nil || !d.Allowed {
			t.Errorf("the slot: %+v and error %v, want it free", d, err)
		}
	})
}

// The second of two settlements waits for the first, and settles if the first fails.
func TestOfSettlementsAtOnceTheFirstThatSucceedsWins(t *testing.T) {
	rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerDay(100)})
	for failures := range 4 {
		f := newFailing()
		r := f.reserve(t, rule.For("k", 50))
		for range failures {
			f.failures = append(f.failures, notCounted)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { _ = r.Settle(context.Background(), 20) })
		}
		all.Wait()
		f.wantLeft(t, "after 8 at once", rule, 80)
		if f.records != failures+1 {
			t.Errorf("%d calls of the engine, want %d that fail and one", f.records, failures)
		}
	}
}

func TestErrorsTellWhetherTheyWereCounted(t *testing.T) {
	m := weir.NewMemory(weir.MemoryOptions{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	rule := mustRule(t, "r", weir.Concurrency{Slots: 1})
	_, badRequest := m.Take(t.Context())
	_, tooLate := m.Take(ended, rule.For("k", 1))
	_, badLimit := weir.ParseLimit("concurrency 0")
	for _, c := range []struct {
		err  error
		want weir.Counted
	}{
		{nil, weir.CountedNo}, {badRequest, weir.CountedNo}, {tooLate, weir.CountedNo}, {badLimit, weir.CountedNo}, {notCounted, weir.CountedNo},
		{lostBefore, weir.CountedUnknown}, {errors.New("of an engine that does not say"), weir.CountedUnknown}, {context.Canceled, weir.CountedUnknown},
		{fmt.Errorf("settle: %w", failure{certain: true, counted: true}), weir.CountedYes},
	} {
		if got := weir.WasCounted(c.err); got != c.want {
			t.Errorf("WasCounted(%v) = %v, want %v", c.err, got, c.want)
		}
	}
	if !errors.Is(tooLate, context.Canceled) {
		t.Errorf("%v is no context.Canceled", tooLate)
	}
}

func TestAZeroReservationSettlesNothing(t *testing.T) {
	if err := new(weir.Reservation).Cancel(t.Context()); err != nil {
		t.Errorf("Cancel of a zero Reservation: %v", err)
	}
}

func TestDoneReleasesTheSlotsAndLeavesTheRestSpent(t *testing.T) {
	both := mustRule(t, "both", weir.TokenBucket{Rate: weir.PerDay(9)}, weir.Concurrency{Slots: 5})
	slots := mustRule(t, "both", weir.Concurrency{Slots: 5})
	bucket := mustRule(t, "both", weir.TokenBucket{Rate: weir.PerDay(9)})
	rate := mustRule(t, "rate", weir.FixedWindow{Rate: weir.PerDay(9)})
	f := newFailing()
	f.reserve(t, slots.For("k", 1)) // another caller
	r := f.reserve(t, rate.For("k", 2), both.For("k", 2))
	f.failures = []failure{notCounted, lostAfterwards}
	for range 2 {
		wantFailure(t, "Done", r.Done(t.Context()))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if err := r.Done(ended); err != nil {
			t.Errorf("Done: %v", err)
		}
	}
	if err := r.Cancel(t.Context()); err != nil {
		t.Errorf("Cancel afterwards: %v", err)
	}
	f.wantLeft(t, "when the work is done", slots, 4)
	f.wantLeft(t, "when the work is done", bucket, 7)
	f.wantLeft(t, "when the work is done", rate, 7)
}

func TestDoneOfAReservationInProcessReleasesSlotsAlone(t *testing.T) {
	for _, c := range []struct {
		limit weir.Limit
		want  int64
	}{
		{weir.Concurrency{Slots: 5}, 5},
		{weir.TokenBucket{Rate: weir.PerDay(5)}, 3},
		{weir.FixedWindow{Rate: weir.PerDay(5)}, 3},
	} {
		lim, keyed := mustNew(t, c.limit), mustKeyed[int](t, c.limit)
		ofKey, err := keyed.Reserve(7, 2, 0)
		if err != nil {
			t.Fatal(err)
		}
		ofLimiter, err := lim.Reserve(2, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*weir.Reservation{ofKey, ofLimiter} {
			for range 2 {
				if err := r.Done(t.Context()); err != nil {
					t.Errorf("%v: Done: %v", c.limit, err)
				}
			}
			if err := r.Cancel(t.Context()); err != nil {
				t.Errorf("%v: Cancel after Done: %v", c.limit, err)
			}
		}
		if a, b := lim.Peek(0).Remaining, keyed.Peek(7, 0).Remaining; a != c.want || b != c.want {
			t.Errorf("%v: %d and %d left of 5 after 2 were reserved and done, want %d", c.limit, a, b, c.want)
		}
	}
}

func TestEverySettlementInProcessEndsEverySlot(t *testing.T) {
	lim, keyed := mustNew(t, weir.Concurrency{Slots: 9}), mustKeyed[int](t, weir.Concurrency{Slots: 9})
	for actual := range int64(5) {
		ofKey, err := keyed.Reserve(7, 2, 0)
		if err != nil {
			t.Fatal(err)
		}
		ofLimiter, err := lim.Reserve(2, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(ofKey.Settle(t.Context(), actual), ofLimiter.Settle(t.Context(), actual)); err != nil {
			t.Errorf("Settle(%d): %v", actual, err)
		}
		if a, b := lim.Peek(0).Remaining, keyed.Peek(7, 0).Remaining; a != 9 || b != 9 {
			t.Errorf("after 2 reserved slots were settled at %d: %d and %d are free, want all 9", actual, a, b)
		}
	}
}

// A rule with slots and units settles them with two calls. The slots end with the first.
func TestUnitsOfASettlementCanBeTriedAgainAfterItsSlotsHaveEnded(t *testing.T) {
	both := mustRule(t, "both", weir.TokenBucket{Rate: weir.PerDay(9)}, weir.Concurrency{Slots: 5})
	bucket, slots := mustRule(t, "both", weir.TokenBucket{Rate: weir.PerDay(9)}), mustRule(t, "both", weir.Concurrency{Slots: 5})
	for again, left := range map[int64]int64{0: 9, 1: 8, 3: 6, 5: 4} {
		f := newFailing()
		r := f.reserve(t, both.For("k", 3))
		f.failures = []failure{noFailure, notCounted}
		wantFailure(t, "Settle(2)", r.Settle(t.Context(), 2))
		f.wantLeft(t, "after the failure", slots, 5)
		f.wantLeft(t, "after the failure", bucket, 6)
		f.reserve(t, slots.For("k", 1)) // another caller
		for range 2 {
			if err := r.Settle(t.Context(), again); err != nil {
				t.Errorf("Settle(%d): %v", again, err)
			}
		}
		f.wantLeft(t, fmt.Sprintf("settled at %d of 3", again), slots, 4)
		f.wantLeft(t, fmt.Sprintf("settled at %d of 3", again), bucket, left)
	}
}

// An unknown release of slots, repeated after the context has ended, loses no units.
func TestASettlementRepeatsTheReleaseOfItsSlotsAndThenSettlesItsUnits(t *testing.T) {
	both := mustRule(t, "both", weir.TokenBucket{Rate: weir.PerDay(9)}, weir.Concurrency{Slots: 5})
	bucket, slots := mustRule(t, "both", weir.TokenBucket{Rate: weir.PerDay(9)}), mustRule(t, "both", weir.Concurrency{Slots: 5})
	ended, cancel := context.WithCancel(t.Context())
	for _, actual := range []int64{3, 2, 5, 0} {
		f := newFailing()
		r := f.reserve(t, both.For("k", 3))
		f.failures = []failure{lostBefore}
		f.onRecord = cancel // so that Settle tries again
		if err := r.Settle(ended, actual); err != nil {
			t.Errorf("Settle(%d) of 3: %v", actual, err)
		}
		f.wantLeft(t, fmt.Sprintf("settled at %d of 3", actual), bucket, 9-actual)
		f.wantLeft(t, fmt.Sprintf("settled at %d of 3", actual), slots, 5)
		ended, cancel = context.WithCancel(t.Context())
	}
	cancel()
}

func TestAReservationThatHoldsNothingDoesNothing(t *testing.T) {
	refused, err := weir.NewMemory(weir.MemoryOptions{}).Reserve(t.Context(), mustRule(t, "r", weir.DenyAll{}).For("k", 1))
	if err != nil || refused.Decision.Allowed {
		t.Fatalf("Reserve: %+v and %v, want a refusal", refused, err)
	}
	for _, r := range []*weir.Reservation{nil, {}, refused} {
		for what, err := range map[string]error{"Settle": r.Settle(t.Context(), 1), "Cancel": r.Cancel(t.Context()), "Done": r.Done(t.Context())} {
			if err != nil {
				t.Errorf("%s of %+v: %v", what, r, err)
			}
		}
		select {
		case <-r.Lost():
			t.Errorf("%+v was lost", r)
		default:
		}
	}
}

// An instant that was promised under another limit keeps no slots: they are released at once.
func TestSlotsComeBackAfterAnInstantWasPromisedUnderAnotherLimit(t *testing.T) {
	bucket, slots := weir.TokenBucket{Rate: weir.PerHour(1)}, weir.Concurrency{Slots: 2}
	lim, keyed := mustNew(t, bucket), mustKeyed[string](t, bucket)
	for name, l := range map[string]struct {
		reserve  func(n int64, longest time.Duration) (*weir.Reservation, error)
		setLimit func(weir.Limit) error
		peek     func(n int64) weir.Decision
	}{
		"Limiter": {lim.Reserve, lim.SetLimit, lim.Peek},
		"Keyed": {
			func(n int64, longest time.Duration) (*weir.Reservation, error) {
				return keyed.Reserve("a", n, longest)
			},
			keyed.SetLimit,
			func(n int64) weir.Decision { return keyed.Peek("a", n) },
		},
	} {
		reserve := func() *weir.Reservation {
			r, err := l.reserve(1, weir.Never)
			if errors.Is(err, weir.ErrRequest) {
				r, err = l.reserve(1, 0)
			}
			if err != nil || !r.Decision.Allowed {
				t.Fatalf("%s: %+v and error %v, want a reservation", name, r, err)
			}
			return r
		}
		reserve()
		reserve() // for an hour from now
		if err := l.setLimit(slots); err != nil {
			t.Fatal(err)
		}
		older := reserve()
		reserve()
		if err := older.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := l.peek(1); !d.Allowed || d.Remaining != 1 {
			t.Errorf("%s: one of two slots was released: %+v, want 1 remaining", name, d)
		}
	}
}
