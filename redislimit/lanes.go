package redislimit

import (
	"cmp"
	"context"
	"slices"

	"github.com/weirflow/weir"
)

// across decides requests whose keys are on different lanes of a cluster, which
// no script can do at once: lane by lane, lowest first, so that those who want
// the same lanes meet at the first. If a later lane refuses, what was taken
// before is undone. Until then others find it taken and may be refused; and if
// this process dies in between, it stays spent. Nothing is ever admitted too
// much.
func (e *Engine) across(ctx context.Context, o op, parts []part, requests []weir.Request) (weir.Decision, error) {
	lanes := byLane(parts)
	taken := make([]decision, 0, len(lanes))
	refused := false
	for _, own := range lanes {
		ask := o
		if refused { // only for the answer
			ask = opPeek
		}
		d, err := e.askLane(ctx, ask, own)
		if err != nil {
			if o == opTake {
				e.giveBack(taken)
			}
			failed := *failure(err)
			failed.Counted = failed.Counted || len(taken) > 0
			return weir.Decision{}, cannotDecide(o.String(), &failed)
		}
		if refused = refused || o == opTake && !d.admitted; !refused {
			taken = append(taken, d)
		}
	}
	if o == opReset {
		return weir.Decision{}, nil
	}
	if refused {
		if err := e.undo(ctx, taken, lanes); err != nil {
			failed := *failure(err)
			failed.Counted = len(taken) > 0
			return weir.Decision{}, cannotDecide(o.String(), &failed)
		}
	}
	all := slices.Concat(lanes...)
	slices.SortStableFunc(all, func(a, b part) int { return cmp.Compare(a.request, b.request) })
	return answer(o, all, requests), nil
}

// byLane groups the parts by lane, in the order of the lanes.
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

// askLane has one decision about parts of one lane answered, and copies what was
// measured into them.
func (e *Engine) askLane(ctx context.Context, o op, parts []part) (decision, error) {
	s := e.submission()
	s.one[0] = decision{op: o, parts: slices.Clone(parts)}
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

// undo undoes what was taken of the first lanes, and measures what that left. It
// is done even if ctx ends meanwhile.
func (e *Engine) undo(ctx context.Context, taken []decision, lanes [][]part) error {
	back := make([]*submission, len(taken))
	for i := range taken {
		back[i] = e.undoing(&taken[i])
	}
	done := make(chan error, 1)
	go func() {
		var failed error
		for _, s := range back {
			err := e.ask(context.Background(), s)
			failed = cmp.Or(failed, err, s.decisions[0].err, s.decisions[1].err)
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
			lanes[i][j].measure = s.decisions[1].parts[j].measure
		}
	}
	return nil
}

// giveBack is undo for which nobody waits.
func (e *Engine) giveBack(taken []decision) {
	for i := range taken {
		e.committer(taken[i].parts[0].lane).send(e.undoing(&taken[i]))
	}
}
