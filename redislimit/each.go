package redislimit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// Each makes each call on its own, in order, in as few calls of the script as the bound of a batch allows. In a cluster
// it calls the lanes concurrently. Calls on one key are in one lane, so they are decided in order. A call on keys of
// several lanes is decided before the others.
func (e *Engine) Each(ctx context.Context, calls []weir.Call, results []weir.Result) error {
	if err := weir.CheckEach(calls, results); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return cannotDecide(weir.OpEach.String(), fault.Uncounted(fault.Cancelled, err))
	}
	for len(calls) > 0 {
		space := eachSpaces.Get().(*eachSpace)
		n := space.split(e, calls, results)
		if len(space.byLane) == 1 {
			space.byLane[0].ask(ctx, e, calls, results)
		} else {
			space.askAll(ctx, e, calls, results)
		}
		space.release()
		if n < len(calls) {
			a, err := e.Do(ctx, calls[n])
			results[n] = weir.Result{Decision: a.Decision, Err: err}
			n++
		}
		calls, results = calls[n:], results[n:]
	}
	return nil
}

// askAll makes the calls of all lanes concurrently. Most lanes have one call, which needs no goroutine to wait for it.
func (h *eachSpace) askAll(ctx context.Context, e *Engine, calls []weir.Call, results []weir.Result) {
	var all sync.WaitGroup
	for _, l := range h.byLane {
		if e.calls.Fitting(l.decisions) < len(l.decisions) {
			all.Go(func() { l.ask(ctx, e, calls, results) })
			continue
		}
		l.started, l.by = e.calls.Submission(), e.calls.Committer(l.lane)
		l.started.Decisions = l.decisions
		l.by.Start(ctx, l.started)
	}
	for _, l := range h.byLane {
		if s := l.started; s != nil {
			l.answered(e, s, 0, len(l.decisions), l.by.Wait(ctx, s), calls, results)
			l.started, l.by = nil, nil
		}
	}
	all.Wait()
}

// eachSpace is what an Each works with. The next one reuses it.
type eachSpace struct {
	parts  []wire.Part
	byLane []*laneDecisions
	index  map[int]*laneDecisions // by lane; unused while there is one lane
}

var eachSpaces = sync.Pool{New: func() any { return &eachSpace{index: map[int]*laneDecisions{}} }}

// mostKeptRequests bounds the space that is kept for reuse.
const mostKeptRequests = 1024

// release keeps the space for reuse, unless a call has failed: its answer may still come.
func (h *eachSpace) release() {
	for _, l := range h.byLane {
		if l.failed {
			return
		}
		clear(l.decisions)
		l.decisions, l.calls = l.decisions[:0], l.calls[:0]
	}
	if cap(h.parts) > mostKeptRequests {
		return
	}
	clear(h.parts)
	clear(h.index)
	h.parts, h.byLane = h.parts[:0], h.byLane[:0]
	eachSpaces.Put(h)
}

// of returns the decisions of a lane.
func (h *eachSpace) of(lane, expected int) *laneDecisions {
	l := h.index[lane]
	if l != nil {
		return l
	}
	if n := len(h.byLane); n < cap(h.byLane) && h.byLane[:n+1][n] != nil {
		h.byLane = h.byLane[:n+1]
		l = h.byLane[n]
	} else {
		l = &laneDecisions{decisions: make([]wire.Decision, 0, expected), calls: make([]int, 0, expected)}
		h.byLane = append(h.byLane, l)
	}
	l.lane, h.index[lane] = lane, l
	return l
}

// laneDecisions are the decisions for one committer.
type laneDecisions struct {
	lane      int
	decisions []wire.Decision
	calls     []int             // index of the call of each decision
	started   *calls.Submission // its only call
	by        *calls.Committer  // makes that call
	failed    bool              // a call
}

// split makes a decision of each valid call, and answers the others. It returns the number of calls up to one that has to
// be made alone.
func (h *eachSpace) split(e *Engine, calls []weir.Call, results []weir.Result) (n int) {
	var last *laneDecisions
	space, lanes := slices.Grow(h.parts, len(calls)), e.calls.Number()
	defer func() { h.parts = space }()
	for i := range calls {
		if results[i].Err != nil {
			continue
		}
		q, alone, err := e.decisionOf(space[len(space):], &calls[i])
		switch {
		case alone:
			return i
		case err == nil && len(q.Parts) == 0:
			results[i].Decision, err = e.withoutState(opOf[calls[i].Op], calls[i].Requests)
		}
		if results[i].Err = err; err != nil || len(q.Parts) == 0 {
			continue
		}
		if len(space)+len(q.Parts) <= cap(space) {
			space = space[:len(space)+len(q.Parts)]
		}
		lane := q.Parts[0].Lane % lanes
		if last == nil || last.lane != lane {
			last = h.of(lane, len(calls)/lanes)
		}
		last.decisions = append(last.decisions, q)
		last.calls = append(last.calls, i)
	}
	return len(calls)
}

// opOf are the script's operations for those of an Each.
var opOf = map[weir.Op]wire.Op{weir.OpTake: wire.OpTake, weir.OpPeek: wire.OpPeek, weir.OpRecord: wire.OpRecord, weir.OpReturn: wire.OpRecord}

// decisionOf returns the decision of a call. alone reports that the call is more than one decision, or gives slots back.
func (e *Engine) decisionOf(space []wire.Part, c *weir.Call) (q wire.Decision, alone bool, err error) {
	o := opOf[c.Op]
	merged, err := mergedOf(o, c)
	if err != nil {
		return q, false, err
	}
	parts, at, err := e.parts(space, merged, c.Lease)
	if err == nil {
		err = cmp.Or(checkLeases(o, parts, merged), tooMuch(o, parts), enginekit.CheckIdentity(c.Op, c.Identity))
	}
	if err != nil {
		return q, false, err
	}
	if !at.oneLane || len(merged) < len(c.Requests) || at.leased && o == wire.OpRecord {
		return q, true, nil
	}
	q = asking(o, 1, parts, at)
	if at.refused {
		q.First = wire.OpTake
	}
	q.Identify(&e.keys, c.Identity)
	return q, false, nil
}

// hung is the time after which a lost call means a hung server. A call lost sooner means a broken connection.
const hung = MinTimeout

// ask makes one call per batch and writes the results. It waits once for a hung server, and does not send later
// batches.
func (l *laneDecisions) ask(ctx context.Context, e *Engine, calls []weir.Call, results []weir.Result) {
	var unsent error
	for from := 0; from < len(l.decisions); {
		to := from + e.calls.Fitting(l.decisions[from:])
		s := e.calls.Submission()
		s.Decisions = l.decisions[from:to]
		err := unsent
		if began := time.Now(); err == nil {
			err = e.calls.Ask(ctx, s)
			if silent(err) && time.Since(began) >= hung {
				unsent = fault.Uncounted(fault.Lost, fmt.Errorf("not sent, because the previous call was lost: %w", err))
			}
		}
		l.answered(e, s, from, to, err, calls, results)
		from = to
	}
}

// answered writes the results of one call, and keeps its submission for reuse.
func (l *laneDecisions) answered(e *Engine, s *calls.Submission, from, to int, err error, calls []weir.Call, results []weir.Result) {
	l.write(from, to, err, calls, results)
	if l.failed = l.failed || err != nil; err == nil {
		e.calls.Release(s)
	}
}

// write writes the results of one call, or its error.
func (l *laneDecisions) write(from, to int, err error, calls []weir.Call, results []weir.Result) {
	for i := from; i < to; i++ {
		d, c, result := &l.decisions[i], &calls[l.calls[i]], &results[l.calls[i]]
		o := opOf[c.Op]
		if failed := cmp.Or(err, d.Err); failed != nil {
			result.Err = cannotDecide(o.String(), failed)
			continue
		}
		result.Decision = answer(o, d.Parts, c.Requests)
	}
}

// silent reports whether a server gave no answer in time.
func silent(err error) bool { return err != nil && fault.Of(err).Reason == fault.Lost }
