package redislimit

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/weirflow/weir"
)

// across decides requests whose keys are in different lanes of a cluster, which no script can decide at once. It goes
// lane by lane, lowest first, so that callers of the same lanes contend at the first. If a later lane refuses, it
// undoes what it took before. If a later lane has room for fewer times, it undoes the surplus. Until then other
// callers may be refused, and if this process dies, the units stay spent. The limit never admits too much.
func (e *Engine) across(ctx context.Context, o op, q decision, requests []weir.Request) (times int64, _ weir.Decision, err error) {
	lanes := byLane(q.parts)
	taken := make([]decision, 0, len(lanes))
	times = q.count()
	for _, own := range lanes {
		ask := decision{op: q.op, times: times}
		if times == 0 { // refused: only completes the answer
			ask = decision{op: opPeek}
		}
		d, err := e.askLane(ctx, ask, own)
		if err != nil {
			if q.op == opTake || q.op == opUpTo {
				e.giveBack(taken, math.MaxInt64)
			}
			failed := *failure(err)
			if len(taken) > 0 || failed.Counted == weir.CountedYes {
				failed.Counted = weir.CountedUnknown
			}
			return 0, weir.Decision{}, cannotDecide(o.String(), &failed)
		}
		if d.op == opTake && !d.admitted {
			times = 0
		} else if times > 0 && q.op != opPeek {
			taken = append(taken, d)
			times = d.count()
		}
	}
	if o == opReset {
		return 0, weir.Decision{}, nil
	}
	if err := e.undo(ctx, taken, lanes, times); err != nil {
		e.giveBack(taken, times)
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

// undo undoes what the first lanes took beyond the given number of times, and measures the rest. It continues after
// ctx has ended.
func (e *Engine) undo(ctx context.Context, taken []decision, lanes [][]part, times int64) error {
	back := map[int]*submission{} // by lane
	for i := range taken {
		if more := taken[i].count() - times; more > 0 {
			back[i] = e.undoing(&taken[i], more, max(1-times, 0))
		}
	}
	if len(back) == 0 {
		return nil
	}
	done := make(chan error, 1)
	go func() {
		var failed error
		for i := range taken {
			if s := back[i]; s != nil {
				err := e.ask(context.Background(), s)
				failed = cmp.Or(failed, err)
				for i := range s.decisions {
					failed = cmp.Or(failed, s.decisions[i].err)
				}
			}
		}
		done <- failed
	}()
	select {
	case err := <-done:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return &Error{Reason: Cancelled, Err: ctx.Err()}
	}
	for i, s := range back {
		for j := range lanes[i] {
			lanes[i][j].measure = s.decisions[len(s.decisions)-1].parts[j].measure
		}
	}
	return nil
}

// giveBack undoes up to the given number of times on each lane. It does not wait for the answers.
func (e *Engine) giveBack(taken []decision, times int64) {
	for i := range taken {
		if back := min(times, taken[i].count()); back > 0 {
			e.committer(taken[i].parts[0].lane).send(e.undoing(&taken[i], back, 1))
		}
	}
}
