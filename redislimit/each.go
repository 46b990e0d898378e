package redislimit

import (
	"cmp"
	"context"
	"fmt"
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
	byLane := e.split(requests, results)
	if len(byLane) == 1 {
		byLane[0].take(ctx, e, requests, results)
		return nil
	}
	var all sync.WaitGroup
	for _, lane := range byLane {
		all.Go(func() { lane.take(ctx, e, requests, results) })
	}
	all.Wait()
	return nil
}

// laneDecisions are the decisions for one committer, each of one request.
type laneDecisions struct {
	lane      int
	decisions []decision
	requests  []int // index of the request of each decision
}

// split makes a decision of each valid request, and answers the others.
func (e *Engine) split(requests []weir.Request, results []weir.Result) []*laneDecisions {
	var byLane []*laneDecisions
	var index map[int]*laneDecisions // by lane; unused while there is one lane
	var last *laneDecisions
	space, lanes := make([]part, 0, len(requests)), len(e.committers())
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
			if last = index[lane]; last == nil {
				expected := len(requests) / lanes
				last = &laneDecisions{lane: lane, decisions: make([]decision, 0, expected), requests: make([]int, 0, expected)}
				byLane = append(byLane, last)
				if index == nil {
					index = map[int]*laneDecisions{}
				}
				index[lane] = last
			}
		}
		q := asking(opTake, 1, parts, at)
		e.identify(&q, one[0].Identity)
		last.decisions = append(last.decisions, q)
		last.requests = append(last.requests, i)
	}
	return byLane
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
		l.write(from, to, err, requests, results)
		if err == nil {
			e.release(s)
		}
		from = to
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
