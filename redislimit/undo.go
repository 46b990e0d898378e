package redislimit

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// takenAt is when the units of each merged request of a take were taken, in us by the clock of its server. A nil one notes
// nothing.
type takenAt []int64

func newTakenAt(requests []weir.Request) takenAt {
	return slices.Repeat(takenAt{math.MinInt64}, len(requests))
}

func (t takenAt) note(parts []wire.Part) {
	for i := range parts {
		if p := &parts[i]; t != nil {
			t[p.Request] = max(t[p.Request], p.Wrote())
		}
	}
}

// of returns the Answer.Taken of the requests that were merged.
func (t takenAt) of(merged, requests []weir.Request) (taken []int64) {
	if t == nil {
		return nil
	}
	for i := range requests {
		at := t[indexOf(merged, &requests[i])]
		taken = append(taken, max(at, math.MinInt64/int64(time.Microsecond))*int64(time.Microsecond))
	}
	return taken
}

// indexOf returns the index of the request with the rule and the key of q.
func indexOf(requests []weir.Request, q *weir.Request) int {
	return slices.IndexFunc(requests, func(r weir.Request) bool { return r.Key == q.Key && r.Rule.Name() == q.Rule.Name() })
}

// undo gives back what still counts of a take, with one call of the script for each lane.
func (e *Engine) undo(ctx context.Context, c weir.Call) (weir.Decision, error) {
	const o = wire.OpRecord
	merged, err := enginekit.Merge(c.Op, c.Requests)
	if err != nil {
		return weir.Decision{}, err
	}
	if err := ctx.Err(); err != nil {
		return weir.Decision{}, cannotDecide(o.String(), fault.Uncounted(fault.Cancelled, err))
	}
	parts, _, err := e.parts(nil, merged, c.Lease)
	if err = cmp.Or(err, tooMuch(o, parts)); err != nil {
		return weir.Decision{}, err
	}
	taken := make([]int64, len(merged))
	for i := range merged {
		taken[i] = c.Taken[indexOf(c.Requests, &merged[i])] / int64(time.Microsecond)
	}
	lanes := byLane(parts)
	for i, own := range lanes {
		if err := e.undoLane(ctx, own, taken); err != nil {
			failed := *fault.Of(err)
			if i > 0 {
				failed.Counted = weir.CountedUnknown
			}
			return weir.Decision{}, cannotDecide(o.String(), &failed)
		}
	}
	parts = slices.Concat(lanes...)
	slices.SortStableFunc(parts, func(a, b wire.Part) int { return cmp.Compare(a.Request, b.Request) })
	return answer(o, parts, merged), nil
}

// undoLane undoes takes of one lane, and measures what is left.
func (e *Engine) undoLane(ctx context.Context, parts []wire.Part, taken []int64) error {
	undos := wire.Settlements(slices.Clone(parts), taken)
	left := wire.Decision{Op: wire.OpPeek, Parts: slices.Clone(parts)}
	for i := range left.Parts {
		left.Parts[i].Cost = 0
	}
	s := calls.NewSubmission(append(undos, left)...)
	if err := e.calls.Ask(ctx, s); err != nil {
		return err
	}
	for i := range s.Decisions {
		if err := s.Decisions[i].Err; err != nil {
			failed := *fault.Of(err)
			failed.Counted = weir.CountedUnknown // others may have been made
			return &failed
		}
	}
	for i := range parts {
		parts[i].Measure = s.Decisions[len(undos)].Parts[i].Measure
	}
	return nil
}
