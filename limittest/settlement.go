package limittest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// lateSettlement cancels reservations in a later window, and beside other units, and tests that only units of their own
// come back. A bucket gets all of them, up to full.
func lateSettlement(f *fixture) {
	period := 100 * time.Second
	rate := weir.Per(5, period)
	for limit, left := range map[weir.Limit]int64{
		weir.FixedWindow{Rate: rate}: 2, weir.FirstWindow{Rate: rate}: 2, weir.SlidingWindow{Rate: rate}: 2, weir.Cycle{Rate: rate}: 2,
		weir.SlidingLog{Rate: rate}: 2, weir.RateGate{Rate: rate}: 2, weir.TokenBucket{Rate: rate}: 5,
	} {
		rule := f.rule("late "+limit.String(), limit)
		for later := range time.Duration(2) {
			key := fmt.Sprint(later)
			f.clock.advance(period - time.Duration(f.clock.now())%period) // a window begins
			r := f.reserve(rule.For(key, 4))
			f.clock.advance(later*period + 3*period/2)
			f.want(fmt.Sprintf("%s: 3 of 5", rule), f.take(rule.For(key, 3)), true, f.peek(rule.For(key, 0)).Remaining)
			f.cancel(r)
			f.wantRemaining(fmt.Sprintf("%s: cancelled %d periods after the next", rule, later), rule, key, left)
		}
	}
	log := f.rule("own entries", weir.SlidingLog{Rate: rate})
	f.take(log.For("k", 2))
	f.clock.advance(period / 2)
	f.cancel(f.reserve(log.For("k", 2)))
	f.wantRemaining("a log whose newest entry is cancelled", log, "k", 3)
	f.clock.advance(period / 2)
	f.wantRemaining("a log without its oldest entry", log, "k", 5)
}

// undoCalls undoes takes with calls of their own, alone and in an Each, with an instant for each request.
func undoCalls(f *fixture) {
	ctx := context.Background()
	log, window := f.rule("log", weir.SlidingLog{Rate: weir.PerHour(9)}), f.rule("window", weir.FixedWindow{Rate: weir.PerHour(9)})
	var undo []weir.Call
	for i := range 3 {
		f.clock.advance(time.Minute)
		take := weir.Call{Op: weir.OpTake, Requests: []weir.Request{log.For("a", 2), window.For("b", 1), log.For("a", 1)}, Lease: uint64(i) + 1}
		a, err := f.engine.Do(ctx, take)
		if err != nil || !a.Decision.Allowed || len(a.Taken) != 3 {
			f.Fatalf("a take with a lease: got %+v, %v, want it admitted, with 3 instants", a, err)
		}
		undo = append(undo, weir.Call{Op: weir.OpReturn, Requests: take.Requests, Taken: a.Taken})
	}
	wrong := undo[0]
	wrong.Taken = wrong.Taken[:2]
	_, err := f.engine.Do(ctx, wrong)
	f.wantRequestError("an undo with 2 instants of 3 requests", err, "taken")
	wrong = undo[0]
	wrong.Op = weir.OpTake
	_, err = f.engine.Do(ctx, wrong)
	f.wantRequestError("a take with instants", err, "taken")

	results := make([]weir.Result, 2)
	if err := f.engine.Each(ctx, undo[1:], results); err != nil || results[0].Err != nil || results[1].Err != nil {
		f.Fatalf("Each of two undos: %v, %+v", err, results)
	}
	f.wantRemaining("after two of three takes were undone", log, "a", 6)
	f.wantRemaining("after two of three takes were undone", window, "b", 8)
	if _, err := f.engine.Do(ctx, undo[2]); err != nil {
		f.Errorf("an undo again: %v", err)
	}
	f.wantRemaining("a log has nothing to undo a second time", log, "a", 6)
	f.clock.advance(time.Hour - 2*time.Minute)
	f.wantRemaining("the entry of the first take has left", log, "a", 9)
}

// randomSettlements takes, reserves and settles at random, and compares each state with that of an engine in memory that
// recorded the true costs.
func randomSettlements(f *fixture) {
	rate, r := weir.Per(20, time.Minute), rand.New(rand.NewPCG(1, 2))
	bucket, window, log := weir.TokenBucket{Rate: rate, Burst: 25}, weir.FixedWindow{Rate: weir.PerHour(300)}, weir.SlidingLog{Rate: rate}
	steps := 120
	if testing.Short() {
		steps = 40
	}
	for _, limits := range [][]weir.Limit{
		{bucket}, {weir.FixedWindow{Rate: rate}}, {weir.SlidingWindow{Rate: rate}}, {log}, {weir.RateGate{Rate: rate}},
		{weir.Cycle{Rate: rate}}, {weir.Quota{Count: rate.Count, Unit: weir.Day}}, {bucket, window}, {window, log, bucket},
	} {
		h := &trueCosts{fixture: f, rule: f.rule(fmt.Sprint("random ", limits), limits...), costs: make([][]counted, len(limits))}
		for range steps {
			f.clock.advance(time.Duration(r.Int64N(int64(20*time.Second))).Truncate(f.tick) * time.Duration(r.IntN(2)))
			switch open := len(h.open); {
			case open > 0 && r.IntN(2) == 0:
				h.settle(r.IntN(open), r.Int64N(9))
			default:
				h.reserve(r.Int64N(9) + 1)
			}
			if f.Failed() {
				return
			}
		}
	}
}

// trueCosts is the history of one key.
type trueCosts struct {
	*fixture
	rule  *weir.Rule
	costs [][]counted // of each limit
	open  []openReservation
}

// counted is a cost at an instant. A negative one came back.
type counted struct{ at, cost int64 }

type openReservation struct {
	*weir.Reservation
	cost int64
	at   int // in the costs of each limit
}

func (h *trueCosts) reserve(cost int64) {
	r, left := h.fixture.reserve(h.rule.For("k", cost)), h.left()
	if r.Decision.Allowed != (cost <= left) {
		h.Errorf("%s: reserve %d where %d should be left: got %+v", h.rule, cost, left, r.Decision)
	}
	if !r.Decision.Allowed {
		return
	}
	h.open = append(h.open, openReservation{r, cost, len(h.costs[0])})
	for i := range h.costs {
		h.costs[i] = append(h.costs[i], counted{h.clock.now(), cost})
	}
}

// settle settles the i-th open reservation at most at its cost.
func (h *trueCosts) settle(i int, actual int64) {
	o := h.open[i]
	h.open = append(h.open[:i], h.open[i+1:]...)
	actual = min(actual, o.cost)
	h.fixture.settle(o.Reservation, actual)
	for j, limit := range h.rule.Limits() {
		// Each limit has an entry, so that a reservation has one place in all of them.
		back := counted{at: h.clock.now()}
		if weir.Describe(limit).Refill == weir.RefillRate { // a bucket
			back.cost = actual - o.cost
		} else {
			h.costs[j][o.at].cost = actual
		}
		h.costs[j] = append(h.costs[j], back)
	}
	if got, want := h.peek(h.rule.For("k", 0)).Remaining, h.left(); got != want {
		h.Errorf("%s: %d of %d taken %v ago were used: %d are left, want %d", h.rule, actual, o.cost,
			time.Duration(h.clock.now()-h.costs[0][o.at].at), got, want)
	}
}

// left returns what the true costs leave.
func (h *trueCosts) left() (left int64) {
	left = weir.MaxCount
	for i, limit := range h.rule.Limits() {
		now := h.clock.now()
		engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
		q := h.fixture.rule("true", limit).For("k", 0)
		for _, c := range h.costs[i] {
			verb := engine.Record
			if now, q.Cost = c.at, c.cost; c.cost < 0 {
				verb, q.Cost = engine.Return, -c.cost
			}
			_, err := verb(context.Background(), q)
			h.decided("Record", []weir.Request{q}, err)
		}
		now, q.Cost = h.clock.now(), 0
		d, err := engine.Peek(context.Background(), q)
		h.decided("Peek", []weir.Request{q}, err)
		left = min(left, d.Remaining)
	}
	return left
}
