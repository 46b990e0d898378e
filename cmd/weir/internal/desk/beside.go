package desk

import (
	"context"
	"errors"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/door"
)

// beside decides shadows and candidates beside the decisions in force, each in a call of its own, without keeping callers
// waiting. One goroutine does so while there is something to decide, many at a time.
type beside struct {
	desk *Desk

	mu    sync.Mutex
	tried []tried // not yet decided
	busy  bool
}

// tried is one request of a shadow or candidate.
type tried struct {
	op      weir.Op // that of the decision in force: a take, or a record of a reported cost
	request weir.Request
	inForce weir.Decision
}

// mostTried bounds the requests that are not yet decided. Further ones count as errors.
const mostTried = 4096

var errTooMany = errors.New("too many shadows and candidates are being decided")

// add leaves out rules for which the caller may not ask.
func (b *beside) add(who *door.Identity, op weir.Op, requests []weir.Request, inForce weir.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range requests {
		switch {
		case who != nil && !who.May(door.Take, inFile(q.Rule)):
		case len(b.tried) == mostTried:
			b.desk.compared(q, inForce, weir.Result{Err: errTooMany})
		default:
			b.tried = append(b.tried, tried{op, q, inForce})
		}
	}
	if !b.busy && len(b.tried) > 0 {
		b.busy = true
		go b.decide()
	}
}

// decide decides until nothing is left.
func (b *beside) decide() {
	for {
		b.mu.Lock()
		now := b.tried
		b.tried, b.busy = nil, len(now) > 0
		b.mu.Unlock()
		if len(now) == 0 {
			return
		}
		calls, results := make([]weir.Call, len(now)), make([]weir.Result, len(now))
		for i := range now {
			calls[i] = weir.Call{Op: now[i].op, Requests: []weir.Request{now[i].request}}
		}
		err := b.desk.Each(context.Background(), calls, results) // a failing engine is noticed by the decisions in force
		for i, r := range results {
			if err != nil {
				r.Err = err
			}
			if now[i].op == weir.OpRecord { // which refuses nothing
				r.Decision.Allowed = true
			}
			b.desk.compared(now[i].request, now[i].inForce, r)
		}
	}
}

func (d *Desk) compared(q weir.Request, inForce weir.Decision, r weir.Result) {
	if d.options.Compared != nil {
		d.options.Compared(q.Rule.Name(), inForce, r.Decision, r.Err)
	}
}
