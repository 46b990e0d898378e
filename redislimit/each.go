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
)

// TakeEach decides each request on its own, in order, in as few calls as the bound of a batch allows. In a cluster it
// calls the lanes concurrently. Requests on one key are in one lane, so they are decided in order.
func (e *Engine) TakeEach(ctx context.Context, requests []weir.Request, results []weir.Result) error {
	if err := enginekit.CheckEach(requests, results); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return cannotDecide(opTake.String(), uncounted(Cancelled, err))
	}
	space := eachSpaces.Get().(*eachSpace)
	space.split(e, requests, results)
	if len(space.byLane) == 1 {
		space.byLane[0].take(ctx, e, requests, results)
	} else {
		space.takeAll(ctx, e, requests, results)
	}
	space.release()
	return nil
}

// takeAll makes the calls of all lanes concurrently. Most lanes have one call, which needs no goroutine to wait for it.
func (h *eachSpace) takeAll(ctx context.Context, e *Engine, requests []weir.Request, results []weir.Result) {
	var all sync.WaitGroup
	for _, l := range h.byLane {
		if batchOf(l.decisions, e.most) < len(l.decisions) {
			all.Go(func() { l.take(ctx, e, requests, results) })
			continue
		}
		l.started, l.by = e.submission(), e.committer(l.lane)
		l.started.decisions = l.decisions
		l.by.start(ctx, l.started)
	}
	for _, l := range h.byLane {
		if s := l.started; s != nil {
			l.answered(e, s, 0, len(l.decisions), l.by.wait(ctx, s), requests, results)
			l.started, l.by = nil, nil
		}
	}
	all.Wait()
}

// eachSpace is what a TakeEach works with. The next one reuses it.
type eachSpace struct {
	parts  []part
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
		l.decisions, l.requests = l.decisions[:0], l.requests[:0]
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
		l = &laneDecisions{decisions: make([]decision, 0, expected), requests: make([]int, 0, expected)}
		h.byLane = append(h.byLane, l)
	}
	l.lane, h.index[lane] = lane, l
	return l
}

// laneDecisions are the decisions for one committer, each of one request.
type laneDecisions struct {
	lane      int
	decisions []decision
	requests  []int       // index of the request of each decision
	started   *submission // its only call
	by        *committer  // makes that call
	failed    bool        // a call
}

// split makes a decision of each valid request, and answers the others.
func (h *eachSpace) split(e *Engine, requests []weir.Request, results []weir.Result) {
	var last *laneDecisions
	space, lanes := slices.Grow(h.parts, len(requests)), len(e.committers())
	for i := range requests {
		results[i] = weir.Result{}
		one := requests[i : i+1]
		_, err := enginekit.Merge(enginekit.Take, one)
		var parts []part
		var at layout
		if err == nil {
			parts, at, err = e.parts(space[len(space):], one)
		}
		if err == nil {
			err = checkLeases(opTake, parts, one)
		}
		if err == nil {
			_, err = enginekit.IdentityOf(enginekit.Take, one)
		}
		if err == nil && len(parts) == 0 {
			results[i].Decision, err = e.withoutState(opTake, one)
		}
		if results[i].Err = err; err != nil || len(parts) == 0 {
			continue
		}
		if len(space)+len(parts) <= cap(space) {
			space = space[:len(space)+len(parts)]
		}
		lane := parts[0].lane % lanes
		if last == nil || last.lane != lane {
			last = h.of(lane, len(requests)/lanes)
		}
		q := asking(opTake, 1, parts, at)
		if at.refused {
			q.first = opTake
		}
		e.identify(&q, one[0].Identity)
		last.decisions = append(last.decisions, q)
		last.requests = append(last.requests, i)
	}
	h.parts = space
}

// hung is the time after which a lost call means a hung server. A call lost sooner means a broken connection.
const hung = MinTimeout

// take makes one call per batch and writes the results. It waits once for a hung server, and does not send later
// batches.
func (l *laneDecisions) take(ctx context.Context, e *Engine, requests []weir.Request, results []weir.Result) {
	var unsent error
	for from := 0; from < len(l.decisions); {
		to := from + batchOf(l.decisions[from:], e.most)
		s := e.submission()
		s.decisions = l.decisions[from:to]
		err := unsent
		if began := time.Now(); err == nil {
			err = e.ask(ctx, s)
			if silent(err) && time.Since(began) >= hung {
				unsent = uncounted(Lost, fmt.Errorf("not sent, because the previous call was lost: %w", err))
			}
		}
		l.answered(e, s, from, to, err, requests, results)
		from = to
	}
}

// answered writes the results of one call, and keeps its submission for reuse.
func (l *laneDecisions) answered(e *Engine, s *submission, from, to int, err error, requests []weir.Request, results []weir.Result) {
	l.write(from, to, err, requests, results)
	if l.failed = l.failed || err != nil; err == nil {
		e.release(s)
	}
}

// write writes the results of one call, or its error.
func (l *laneDecisions) write(from, to int, err error, requests []weir.Request, results []weir.Result) {
	for i := from; i < to; i++ {
		d, request := &l.decisions[i], l.requests[i]
		if failed := cmp.Or(err, d.err); failed != nil {
			results[request].Err = cannotDecide(opTake.String(), failed)
			continue
		}
		results[request].Decision = answer(opTake, d.parts, requests[request:request+1])
	}
}

// silent reports whether a server gave no answer in time.
func silent(err error) bool { return err != nil && failure(err).Reason == Lost }

// batchOf returns how many of the decisions fit in one call.
func batchOf(decisions []decision, most int) int {
	work := workload{}
	for n := range decisions {
		work.add(&decisions[n])
		if n == most || n > 0 && work.full() {
			return n
		}
	}
	return len(decisions)
}
