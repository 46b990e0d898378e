package replay

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/internal/tape"
)

// HoldOptions say how reservations of work are tried whose cost is known afterwards.
type HoldOptions struct {
	Estimate front.EstimateOptions // a Max of 0 is the capacity of the limit
	Took     time.Duration         // of each piece of work: from its line to its settlement. Default: settled at once
}

// HoldReport counts the outcomes of all events, for one number of units that reservations hold.
type HoldReport struct {
	Limit    string `json:"limit"`
	Holds    string `json:"holds"` // nothing, the same number each time, or an estimate: "none", "fixed 8000", "p95"
	Admitted int64  `json:"admitted"`
	Refused  int64  `json:"refused"`
	Needless int64  `json:"needless"` // refused requests whose true cost would have fitted
	Used     int64  `json:"used"`     // units, by the admitted
	Beyond   int64  `json:"beyond"`   // of these units, those that did not fit when they were settled
}

// Holds tries a candidate on work whose cost is known when it ends: without holding anything, with Max held for each
// piece, and with an estimate that learns from settled costs. Refused work has no cost, and does not come again.
func (t *Traffic) Holds(c Candidate, o HoldOptions) (reports []HoldReport, err error) {
	rule, err := weir.NewRule("replay", c.Limits...)
	if err == nil && weir.Kit.Held(rule) != nil {
		err = fmt.Errorf("replay: holds %q: it has slots, whose units are not used up by work", c.Text)
	}
	if err != nil {
		return nil, err
	}
	capacity := int64(weir.MaxCount)
	for _, limit := range c.Limits {
		capacity = min(capacity, weir.Describe(limit).Capacity)
	}
	if o.Estimate.Max == 0 {
		o.Estimate.Max = capacity
	}
	estimate, err := front.NewEstimate(o.Estimate)
	switch {
	case err != nil:
		return nil, err
	case estimate.Max > capacity:
		return nil, fmt.Errorf("replay: holds %q: max is %d, above %d, the largest cost that the limit admits", c.Text, estimate.Max, capacity)
	}
	t.group()
	for _, h := range []holder{
		{HoldReport: HoldReport{Holds: "none"}},
		{HoldReport: HoldReport{Holds: fmt.Sprint("fixed ", estimate.Max)}, fixed: estimate.Max},
		{HoldReport: HoldReport{Holds: fmt.Sprint("p", estimate.Percent)}, estimate: estimate},
	} {
		h.Limit, h.rule, h.took = c.Text, rule, int64(o.Took)
		h.engine = tape.New()
		if err := h.all(t); err != nil {
			return nil, err
		}
		reports = append(reports, h.HoldReport)
	}
	return reports, nil
}

// holder replays events with reservations.
type holder struct {
	HoldReport
	rule     *weir.Rule
	engine   *tape.Tape
	took     int64
	fixed    int64           // units that are held; 0 for none
	estimate *front.Estimate // or by which they are held
	working  []piece         // of one key, in order of their ends
}

// piece is a piece of work that was admitted.
type piece struct {
	ends         int64
	held, actual int64
	hold         *weir.Reservation // nil if nothing is held
}

func (h *holder) all(t *Traffic) error {
	for id, key := range t.keys {
		for _, e := range t.of(id) {
			if err := h.settleUntil(key, e.At); err != nil {
				return err
			}
			h.engine.At(e.At)
			if err := h.begin(key, int64(e.Cost)); err != nil {
				return err
			}
		}
		if err := h.settleUntil(key, math.MaxInt64); err != nil {
			return err
		}
		if err := h.engine.Forget(h.rule.For(key, 1)); err != nil {
			return err
		}
	}
	return nil
}

// begin admits or refuses a piece of work.
func (h *holder) begin(key string, actual int64) error {
	w := piece{ends: h.engine.Now() + h.took, actual: actual, held: h.fixed}
	if h.estimate != nil {
		w.held = h.estimate.Of(key, 0)
	}
	d, err := h.ask(key, &w)
	switch {
	case err != nil:
		return err
	case d.Allowed:
		h.Admitted++
		h.working = append(h.working, w)
	default:
		h.Refused++
		if d.Remaining >= actual {
			h.Needless++
		}
	}
	return nil
}

// ask holds the units of the work, or asks for one if it holds none.
func (h *holder) ask(key string, w *piece) (d weir.Decision, err error) {
	if w.held == 0 {
		return h.engine.Peek(context.Background(), h.rule.For(key, 1))
	}
	w.hold, err = h.engine.Reserve(context.Background(), h.rule.For(key, w.held))
	if err != nil {
		return d, err
	}
	return w.hold.Decision, nil
}

// settleUntil settles the work that ends until an instant.
func (h *holder) settleUntil(key string, until int64) error {
	ctx := context.Background()
	for len(h.working) > 0 && h.working[0].ends <= until {
		w := h.working[0]
		h.working = h.working[1:]
		h.engine.At(w.ends)
		room, err := h.engine.Peek(ctx, h.rule.For(key, 0))
		switch {
		case err != nil:
		case w.hold != nil:
			err = w.hold.Settle(ctx, w.actual)
		default:
			_, err = h.engine.Record(ctx, h.rule.For(key, w.actual))
		}
		if err != nil {
			return err
		}
		h.Used += w.actual
		h.Beyond += max(0, w.actual-w.held-room.Remaining)
		if h.estimate != nil {
			h.estimate.Learn(key, w.actual)
		}
	}
	return nil
}
