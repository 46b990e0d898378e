// Package pace runs work at the speed of a limit. Each function waits its turn
// on a [Pacer], which may be shared: a *weir.Limiter, one key of a weir.Keyed
// (its For method), or one class or flow of either ([InClass], [InFlow]).
//
//	page, err := pace.Do(ctx, lim, fetch)               // a call
//	urls, refused := pace.Seq(ctx, lim, urls)           // a sequence
//	pages, refused := pace.Seq2(ctx, lim, pages)        // a sequence of pairs
//	jobs, refused := pace.Chan(ctx, lim, jobs)          // a channel
//	r := pace.Reader(ctx, lim, r)                       // a byte costs 1
//	w := pace.Writer(ctx, lim, w)
//	page, err := pace.Do(ctx, pace.InClass(lim, 1), fetch) // with weir.Options.Weights
//
// A [Queue] waits for an engine: several limits, several keys, or limits that
// processes share.
//
// Nothing is taken for work that is refused. The functions release the slots of
// a weir.Concurrency when the work is done. Units of other limits stay spent.
//
// Do, Seq, Seq2, Chan and a Queue may be used concurrently; a Reader or a Writer serves
// one goroutine.
package pace

import (
	"context"

	"github.com/weirflow/weir"
)

// Pacer grants turns.
type Pacer interface {
	// WaitTurn returns nil when the cost of the turn was taken. A cost that can
	// never fit is a *weir.CostError with the capacity. A Pacer over another
	// passes Turn.Slots on, because only the innermost one can fill it.
	WaitTurn(ctx context.Context, turn weir.Turn) error
	// Return gives back what was taken and not used.
	Return(n int64) weir.Decision
}

var (
	_ Pacer = (*weir.Limiter)(nil)
	_ Pacer = weir.KeyLimiter[string]{}
)

// Do runs fn when its turn comes, at a cost of 1, and returns what fn returns. If
// the turn is refused, Do returns the error of Limiter.Wait and does not run fn.
// A deadline of ctx bounds the wait and fn together.
// The unit stays spent even if fn fails or panics. A slot of a Concurrency is
// held while fn runs, and released when it returns or panics.
func Do[T any](ctx context.Context, p Pacer, fn func(context.Context) (T, error)) (T, error) {
	t := turns{pacer: p}
	if err := t.take(ctx, 1); err != nil {
		var none T
		return none, err
	}
	defer t.done()
	return fn(ctx)
}

// InClass returns a Pacer that takes its turns of p in one class of weir.Options.Weights. It ignores the class of a
// turn.
func InClass(p Pacer, class int) Pacer {
	return changed{p, func(t weir.Turn) weir.Turn { t.Class = class; return t }}
}

// InFlow returns a Pacer that takes its turns of p in a flow with a weight: see weir.Turn. Streams with flows of their
// own share a bandwidth fairly, and leave unused bandwidth to each other.
func InFlow(p Pacer, flow string, weight int64) Pacer {
	return changed{p, func(t weir.Turn) weir.Turn { t.Flow, t.Weight = flow, weight; return t }}
}

// changed is a Pacer that changes its turns.
type changed struct {
	Pacer
	change func(weir.Turn) weir.Turn
}

func (c changed) WaitTurn(ctx context.Context, turn weir.Turn) error {
	return c.Pacer.WaitTurn(ctx, c.change(turn))
}
