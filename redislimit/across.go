package redislimit

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// across decides requests whose keys are in different lanes of a cluster, because no script can decide them together. It
// goes lane by lane, lowest first, so that callers of the same lanes contend at the first. If a later lane refuses or
// fails, it undoes what it took before, and what it may have taken there. If a later lane has room for fewer times, it
// undoes the surplus. Of several calls with one identity, the first that got the last lane's answer undoes it. Until
// then other callers may be refused, and if this process dies, the units stay spent. The limit never admits too much.
//
// Each lane's take has an identity, so that an undo of it can be repeated, and can be sent for a take without an answer.
// A caller's own identity lets the caller ask again, so after an error its takes are not undone.
func (e *Engine) across(ctx context.Context, o wire.Op, q wire.Decision, identity string, requests []weir.Request, taken takenAt) (times int64, _ weir.Decision, err error) {
	a := &laneByLane{engine: e, takes: q.Op == wire.OpTake || q.Op == wire.OpUpTo, identity: identity}
	lanes := byLane(q.Parts)
	times = q.Count()
	for i, own := range lanes {
		ask := wire.Decision{Op: q.Op, Times: times, Final: q.Final}
		if i == 0 {
			ask.Most = q.Most
		}
		if times == 0 { // refused: only completes the answer
			ask = wire.Decision{Op: wire.OpPeek}
		}
		d, err := a.ask(ctx, ask, own)
		if err != nil {
			return 0, weir.Decision{}, a.failed(o, err)
		}
		a.again = d.Again
		taken.note(d.Parts)
		if d.Op == wire.OpTake && !d.Admitted {
			times = 0
		} else if times > 0 && q.Op != wire.OpPeek {
			a.taken = append(a.taken, d)
			times = d.Count()
		}
	}
	if o == wire.OpReset {
		return 0, weir.Decision{}, nil
	}
	if err := a.undoSurplus(ctx, lanes, times); err != nil {
		failed := *fault.Of(err)
		failed.Counted = weir.CountedUnknown
		return 0, weir.Decision{}, cannotDecide(o.String(), &failed)
	}
	all := slices.Concat(lanes...)
	slices.SortStableFunc(all, func(a, b wire.Part) int { return cmp.Compare(a.Request, b.Request) })
	return times, answer(o, all, requests), nil
}

// byLane groups the parts by lane, in lane order.
func byLane(parts []wire.Part) [][]wire.Part {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b wire.Part) int { return cmp.Compare(a.Lane, b.Lane) })
	var lanes [][]wire.Part
	for len(parts) > 0 {
		n := 1
		for n < len(parts) && parts[n].Lane == parts[0].Lane {
			n++
		}
		lanes = append(lanes, parts[:n:n])
		parts = parts[n:]
	}
	return lanes
}

// laneByLane is one decision across lanes.
type laneByLane struct {
	engine   *Engine
	takes    bool
	identity string          // the caller's; empty without one
	taken    []wire.Decision // by lane
	asked    wire.Decision   // the last lane's
	again    bool            // the last lane's answer is the first one again, so another call has undone the surplus
}

// ask makes the decision of one lane.
func (a *laneByLane) ask(ctx context.Context, ask wire.Decision, parts []wire.Part) (wire.Decision, error) {
	ask.Parts = parts
	switch {
	case a.identity != "":
		ask.Identify(&a.engine.keys, a.identity)
	case ask.Op == wire.OpTake || ask.Op == wire.OpUpTo:
		ask.Identity = a.engine.keys.Identity(parts[0].Lane, "", newIdentity())
	}
	a.asked = ask
	return a.engine.askLane(ctx, ask, parts)
}

// askLane makes one decision about parts of one lane and copies the measurements into them.
func (e *Engine) askLane(ctx context.Context, ask wire.Decision, parts []wire.Part) (wire.Decision, error) {
	s := e.calls.Submission()
	ask.Parts = slices.Clone(parts)
	s.One[0] = ask
	s.Decisions = s.One[:]
	if err := e.calls.Ask(ctx, s); err != nil {
		return wire.Decision{}, err
	}
	d := s.One[0]
	e.calls.Release(s)
	for i := range parts {
		parts[i].Measure = d.Parts[i].Measure
	}
	return d, d.Err
}

// failed returns the error of the decision after that of a lane, and undoes a take.
func (a *laneByLane) failed(o wire.Op, err error) error {
	failed := *fault.Of(peekUncounted(a.asked.Op, err))
	if a.takes && a.identity == "" {
		for i := range a.taken {
			a.engine.calls.UndoLater(a.taken[i].UndoOf(a.taken[i].Count()))
		}
		if failed.Counted != weir.CountedNo && a.asked.Identity != "" {
			a.engine.calls.UndoUnanswered(a.asked)
		}
	}
	if len(a.taken) > 0 || failed.Counted == weir.CountedYes {
		failed.Counted = weir.CountedUnknown
	}
	return cannotDecide(o.String(), &failed)
}

// undoSurplus undoes what the first lanes took beyond the given number of times, and measures the rest. It continues
// after ctx has ended.
func (a *laneByLane) undoSurplus(ctx context.Context, lanes [][]wire.Part, times int64) error {
	if !a.takes {
		return nil
	}
	back := map[int]*calls.Submission{} // by lane
	for i := range a.taken {
		d := &a.taken[i]
		if more := d.Count() - times; more > 0 {
			undos := d.Undos(more)
			switch {
			case times == 0:
				undos = []wire.Decision{d.UndoOf(d.Count())}
			case a.again:
				undos = nil
			}
			back[i] = calls.NewSubmission(append(undos, wire.Decision{Op: wire.OpPeek, Parts: d.Repeated(max(1-times, 0))})...)
		}
	}
	if len(back) == 0 {
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- a.sendSurplus(back, times) }()
	select {
	case err := <-done:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return a.leave(ctx, done, times)
	}
	for i, s := range back {
		for j := range lanes[i] {
			lanes[i][j].Measure = s.Decisions[len(s.Decisions)-1].Parts[j].Measure
		}
	}
	return nil
}

// sendSurplus sends undos and repeats those that failed in the background.
func (a *laneByLane) sendSurplus(back map[int]*calls.Submission, times int64) (failed error) {
	a.engine.calls.Stats.Surplus.Add(int64(len(back)))
	for i := range a.taken {
		s := back[i]
		if s == nil {
			continue
		}
		undos := slices.Clone(s.Decisions[:len(s.Decisions)-1])
		for j := range undos {
			undos[j].Parts = slices.Clone(undos[j].Parts)
		}
		err := a.engine.calls.Ask(context.Background(), s)
		a.engine.calls.Stats.Surplus.Add(-1)
		for j := range s.Decisions {
			own := err
			if own == nil { // otherwise s may still be written
				own = s.Decisions[j].Err
			}
			failed = cmp.Or(failed, own)
			if own == nil || j >= len(undos) {
				continue
			}
			if undos[j].Identity != "" {
				a.engine.calls.UndoLater(undos[j])
			} else {
				a.engine.calls.Stats.Abandoned.Add(1)
			}
		}
	}
	return failed
}

// leave returns the error of a caller that left during the undo of a surplus. After that undo, everything else is undone
// too, because the caller has no answer.
func (a *laneByLane) leave(ctx context.Context, done <-chan error, times int64) error {
	if times > 0 && a.identity == "" {
		go func() {
			<-done
			for i := range a.taken {
				a.engine.calls.UndoLater(a.taken[i].UndoOf(times))
			}
		}()
	}
	return &fault.Error{Reason: fault.Cancelled, Err: ctx.Err()}
}

// newIdentity returns an identity for a part of a take across lanes.
func newIdentity() string { return strconv.FormatUint(rand.Uint64(), 36) }
