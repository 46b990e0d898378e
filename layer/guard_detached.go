package layer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
)

// An engine that promises nothing about the end of its calls may hang. Its calls run on goroutines of their own, which
// their callers leave at the deadline. At most mostDetached of them run at a time, so no more can hang.
const mostDetached = 64

type detached struct {
	room    chan struct{}
	hanging atomic.Int64 // calls that their callers have left
}

func (a *detached) init() { a.room = make(chan struct{}, mostDetached) }

// detachedCall is a call on a goroutine of its own.
type detachedCall struct {
	call   weir.Call
	began  time.Time
	state  atomic.Int32 // of the states below
	answer weir.Answer
	err    error
	done   chan struct{}
}

const (
	asked int32 = iota
	answered
	left
)

// elsewhere makes a call on another goroutine, and leaves it there at the deadline.
func (g *Guarded) elsewhere(ctx context.Context, call weir.Call, within time.Duration, next weir.Next) (weir.Answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	select {
	case g.detached.room <- struct{}{}:
	case <-ctx.Done():
		return weir.Answer{}, &lateError{call.Op, within, weir.CountedNo}
	}
	b := &detachedCall{call: kept(call), began: g.clock.now(), done: make(chan struct{})}
	b.call.Within = 0
	go g.make(ctx, b, next)
	select {
	case <-b.done:
	case <-ctx.Done():
		g.detached.hanging.Add(1)
		if b.state.CompareAndSwap(asked, left) {
			return weir.Answer{}, &lateError{call.Op, within, weir.CountedUnknown}
		}
		g.detached.hanging.Add(-1)
		<-b.done
	}
	if call.Op == weir.OpEach {
		copy(call.Each.Results, b.call.Each.Results)
	}
	return b.answer, b.err
}

// make makes the call, and undoes what it took if its caller has left.
func (g *Guarded) make(ctx context.Context, b *detachedCall, next weir.Next) {
	defer func() { <-g.detached.room }()
	b.err = errExited // unless the engine returns
	defer func() {
		if b.state.CompareAndSwap(asked, answered) {
			close(b.done)
			return
		}
		defer g.detached.hanging.Add(-1)
		if b.err == nil {
			g.undo(b)
		}
	}()
	b.answer, b.err = guarded(ctx, b.call, next)
}

// errExited is the error of a call whose engine called runtime.Goexit, as a fake one does by t.Fatal.
var errExited = errors.New("layer: the engine ended its goroutine")

// kept returns a copy of a call that the engine may keep after the caller has gone on.
func kept(call weir.Call) weir.Call {
	call.Requests, call.Taken = slices.Clone(call.Requests), slices.Clone(call.Taken)
	if call.Op != weir.OpEach {
		return call
	}
	call.Each = &weir.Batch{Calls: slices.Clone(call.Each.Calls), Results: make([]weir.Result, len(call.Each.Results))}
	for i := range call.Each.Calls {
		call.Each.Calls[i].Requests = slices.Clone(call.Each.Calls[i].Requests)
	}
	return call
}

// undoTime bounds an undo.
const undoTime = 100 * time.Millisecond

// undo gives back the units of a call whose caller has left.
func (g *Guarded) undo(b *detachedCall) {
	ctx, cancel := context.WithTimeout(context.Background(), undoTime)
	defer cancel()
	if r := b.answer.Reservation; r != nil {
		_ = r.Cancel(ctx)
		return
	}
	age := max(g.clock.since(b.began), 0) + undoTime
	switch b.call.Op {
	case weir.OpTake, weir.OpTakeUpTo:
		g.undoTake(ctx, b.call, b.answer, age)
	case weir.OpEach:
		for i, c := range b.call.Each.Calls {
			switch r := b.call.Each.Results[i]; {
			case r.Reservation != nil:
				_ = r.Reservation.Cancel(ctx)
			case c.Op == weir.OpTake && r.Err == nil:
				g.undoTake(ctx, c, weir.Answer{Decision: r.Decision}, age)
			}
		}
	}
}

// undoTake gives back the slots of a take, and those of its other units that are certainly still outstanding.
func (g *Guarded) undoTake(ctx context.Context, call weir.Call, a weir.Answer, age time.Duration) {
	if !a.Decision.Allowed || call.Identity != "" { // with an identity it can be asked again
		return
	}
	times := int64(1)
	if call.Op == weir.OpTakeUpTo {
		times = a.Times
	}
	back := slotsOf(call)
	for _, q := range call.Requests {
		f := factsOf(q.Rule)
		q.Rule, q.Cost = f.units, f.outstanding(scaled(q.Cost, times, 1), age, false)
		if q.Rule != nil && q.Cost > 0 {
			_, _ = guarded(ctx, weir.Call{Op: weir.OpReturn, Requests: []weir.Request{q}}, g.next)
		}
	}
	if len(back.Requests) > 0 {
		_, _ = guarded(ctx, back, g.next)
	}
}

// lateError is the error of a call that the engine did not answer in time.
type lateError struct {
	op      weir.Op
	within  time.Duration
	counted weir.Counted
}

func (e *lateError) Error() string {
	return fmt.Sprintf("layer: %s: the engine did not answer within %v", e.op, e.within)
}
func (e *lateError) Unwrap() error            { return context.DeadlineExceeded }
func (e *lateError) WasCounted() weir.Counted { return e.counted }
func (e *lateError) Unavailable() bool        { return true }
