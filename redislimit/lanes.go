package redislimit

import (
	"cmp"
	"context"
	"slices"

	"github.com/weirflow/weir"
)

// across decides requests whose keys are in different lanes of a cluster, which no script can decide at once. It goes
// lane by lane, lowest first, so that callers of the same lanes contend at the first. If a later lane refuses or fails,
// it undoes what it took before, and what it may have taken there. If a later lane has room for fewer times, it undoes
// the surplus. Of several calls with one identity, the first that got the last lane's answer undoes it. Until then other
// callers may be refused, and if this process dies, the units stay spent. The limit never admits too much.
//
// Each lane's take has an identity, so that an undo of it can be repeated, and can be sent for a take without an answer.
// A caller's own identity lets the caller ask again, so after an error its takes are not undone.
func (e *Engine) across(ctx context.Context, o op, q decision, identity string, requests []weir.Request) (times int64, _ weir.Decision, err error) {
	a := &laneByLane{engine: e, takes: q.op == opTake || q.op == opUpTo, identity: identity}
	lanes := byLane(q.parts)
	times = q.count()
	for i, own := range lanes {
		ask := decision{op: q.op, times: times}
		if i == 0 {
			ask.most = q.most
		}
		if times == 0 { // refused: only completes the answer
			ask = decision{op: opPeek}
		}
		d, err := a.ask(ctx, ask, own)
		if err != nil {
			return 0, weir.Decision{}, a.failed(o, err)
		}
		a.again = d.again
		if d.op == opTake && !d.admitted {
			times = 0
		} else if times > 0 && q.op != opPeek {
			a.taken = append(a.taken, d)
			times = d.count()
		}
	}
	if o == opReset {
		return 0, weir.Decision{}, nil
	}
	if err := a.undoSurplus(ctx, lanes, times); err != nil {
		failed := *failure(err)
		failed.Counted = weir.CountedUnknown
		return 0, weir.Decision{}, cannotDecide(o.String(), &failed)
	}
	all := slices.Concat(lanes...)
	slices.SortStableFunc(all, func(a, b part) int { return cmp.Compare(a.request, b.request) })
	return times, answer(o, all, requests), nil
}

// byLane groups the parts by lane, in lane order.
func byLane(parts []part) [][]part {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.lane, b.lane) })
	var lanes [][]part
	for len(parts) > 0 {
		n := 1
		for n < len(parts) && parts[n].lane == parts[0].lane {
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
	identity string     // the caller's; empty without one
	taken    []decision // by lane
	asked    decision   // the last lane's
	again    bool       // the last lane's answer is the first one again, so another call has undone the surplus
}

// ask makes the decision of one lane.
func (a *laneByLane) ask(ctx context.Context, ask decision, parts []part) (decision, error) {
	ask.parts = parts
	switch {
	case a.identity != "":
		a.engine.identify(&ask, a.identity)
	case ask.op == opTake || ask.op == opUpTo:
		ask.identity = a.engine.keys.identity(parts[0].lane, "", newIdentity())
	}
	a.asked = ask
	return a.engine.askLane(ctx, ask, parts)
}

// askLane makes one decision about parts of one lane and copies the measurements into them.
func (e *Engine) askLane(ctx context.Context, ask decision, parts []part) (decision, error) {
	s := e.submission()
	ask.parts = slices.Clone(parts)
	s.one[0] = ask
	s.decisions = s.one[:]
	if err := e.ask(ctx, s); err != nil {
		return decision{}, err
	}
	d := s.one[0]
	e.release(s)
	for i := range parts {
		parts[i].measure = d.parts[i].measure
	}
	return d, d.err
}

// failed returns the error of the decision after that of a lane, and undoes a take.
func (a *laneByLane) failed(o op, err error) error {
	failed := *failure(a.asked.op.uncounted(err))
	if a.takes && a.identity == "" {
		for i := range a.taken {
			a.engine.undoLater(a.taken[i].undoOf(a.taken[i].count()))
		}
		if failed.Counted != weir.CountedNo && a.asked.identity != "" {
			a.engine.undoUnanswered(a.asked)
		}
	}
	if len(a.taken) > 0 || failed.Counted == weir.CountedYes {
		failed.Counted = weir.CountedUnknown
	}
	return cannotDecide(o.String(), &failed)
}

// undoOf returns the undo of a take by its identity, for a number of times its costs.
func (d *decision) undoOf(times int64) decision {
	return decision{op: opUndo, parts: d.repeated(times), now: d.now, sent: d.sent, identity: d.identity}
}

// undoSurplus undoes what the first lanes took beyond the given number of times, and measures the rest. It continues
// after ctx has ended.
func (a *laneByLane) undoSurplus(ctx context.Context, lanes [][]part, times int64) error {
	if !a.takes {
		return nil
	}
	back := map[int]*submission{} // by lane
	for i := range a.taken {
		d := &a.taken[i]
		if more := d.count() - times; more > 0 {
			undos := d.undos(more)
			switch {
			case times == 0:
				undos = []decision{d.undoOf(d.count())}
			case a.again:
				undos = nil
			}
			back[i] = &submission{done: make(chan struct{}, 1), decisions: append(undos, decision{op: opPeek, parts: d.repeated(max(1-times, 0))})}
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
			lanes[i][j].measure = s.decisions[len(s.decisions)-1].parts[j].measure
		}
	}
	return nil
}

// sendSurplus sends undos and repeats those that failed in the background.
func (a *laneByLane) sendSurplus(back map[int]*submission, times int64) (failed error) {
	a.engine.stats.undoing.Add(int64(len(back)))
	for i := range a.taken {
		s := back[i]
		if s == nil {
			continue
		}
		undos := slices.Clone(s.decisions[:len(s.decisions)-1])
		for j := range undos {
			undos[j].parts = slices.Clone(undos[j].parts)
		}
		err := a.engine.ask(context.Background(), s)
		a.engine.stats.undoing.Add(-1)
		for j := range s.decisions {
			own := err
			if own == nil { // otherwise s may still be written
				own = s.decisions[j].err
			}
			failed = cmp.Or(failed, own)
			if own == nil || j >= len(undos) {
				continue
			}
			if undos[j].identity != "" {
				a.engine.undoLater(undos[j])
			} else {
				a.engine.stats.abandoned.Add(1)
			}
		}
	}
	return failed
}

// leave returns the error of a caller that left during the undo of a surplus. When that is done, everything else is
// undone too, because the caller has no answer.
func (a *laneByLane) leave(ctx context.Context, done <-chan error, times int64) error {
	if times > 0 && a.identity == "" {
		go func() {
			<-done
			for i := range a.taken {
				a.engine.undoLater(a.taken[i].undoOf(times))
			}
		}()
	}
	return &Error{Reason: Cancelled, Err: ctx.Err()}
}
