package decide

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// A settlement that must happen once, on whichever daemon, has a mark in the engine: the only slot of SettledRule for
// its key. A settlement takes the slot first. The mark outlives the token or id that it marks.

// The names of the rules whose keys are marks. No policy stands in for the engine at SettledRule: a mark that another daemon cannot
// see would let units come back twice. HereRule marks what a policy of this daemon gave, while the engine is away.
const (
	SettledRule = "~settled"
	HereRule    = "~settled here"
)

// settledFor is how much longer than it is needed a mark lasts: longer than clocks differ.
const settledFor = time.Minute

// undoWithin bounds an undo.
const undoWithin = time.Second

// markOf returns the request for the mark of a lease.
func markOf(lease uint64, what string, lasts time.Duration) ([]weir.Request, error) {
	rule, err := weir.NewRule(SettledRule, weir.Concurrency{Slots: 1, Lease: min(lasts, weir.MaxPeriod)})
	if err != nil {
		return nil, err
	}
	return []weir.Request{rule.For(strconv.FormatUint(lease, 36)+what, 1)}, nil
}

// once settles what a lease names, and takes a mark before, or returns ErrToken if that has happened. A harmless
// repetition needs no mark where none can be had. After an error that was not counted, the mark is free again.
func (d *Desk) once(ctx context.Context, mark []weir.Request, lease uint64, repeatable bool, settle func() error) error {
	// The mark has a lease of its own: a Guard settles in this process what belongs to leases that it gave while the engine
	// was away, and the engine may have given that of the reservation.
	call := weir.Call{Op: weir.OpTake, Requests: mark, Lease: weir.Kit.NewLease()}
	if err := d.unsettled(ctx, &call, lease); err == ErrToken || err != nil && !repeatable {
		return err
	}
	err := settle()
	if err == nil {
		d.doubts.forget(mark[0].Key, 0) // the mark, if there is one, is right
	}
	if err == nil && d.gave(call.Lease) {
		_, _ = d.engine.Do(ctx, weir.Call{Op: weir.OpRecord, Requests: mark, Lease: weir.Kit.NewLease()}) // at the engine when it is back
	}
	if err != nil && (weir.WasCounted(err) == weir.CountedNo || repeatable) { // it can be tried again
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
		defer cancel()
		call.Op = weir.OpReturn
		if _, failed := d.engine.Do(ctx, call); failed != nil {
			d.doubts.add(call) // so that the mark is released before it is asked for again
		}
	}
	return err
}

// unsettled takes a mark or peeks at it, and returns ErrToken if it was taken before. While the engine is away, this daemon settles
// what its policy gave, by a mark of HereRule instead.
func (d *Desk) unsettled(ctx context.Context, mark *weir.Call, lease uint64) error {
	err := d.unmarked(ctx, *mark)
	if err == ErrToken {
		var again bool
		if again, err = d.doubts.release(ctx, d.engine, mark.Requests[0].Key); again {
			err = d.unmarked(ctx, *mark)
		} else if err == nil {
			err = ErrToken
		}
	}
	if weir.Unavailable(err) && d.gave(lease) {
		here, bad := weir.NewRule(HereRule, mark.Requests[0].Rule.Limits()...)
		if bad != nil {
			return bad
		}
		mark.Requests = []weir.Request{here.For(mark.Requests[0].Key, 1)}
		err = d.unmarked(ctx, *mark)
	}
	if err != nil && err != ErrToken && err != ErrCrowded {
		return uncounted{err}
	}
	return err
}

// gave reports whether a policy has admitted a call with the lease, rather than the engine.
func (d *Desk) gave(lease uint64) bool {
	guard, ok := weir.Find[*layer.Guarded](d.engine)
	return ok && guard.Gave(lease)
}

// unmarked takes one mark or peeks at it. Keys without room in the memory engine share a mark, so a refusal is not believed while
// that happens.
func (d *Desk) unmarked(ctx context.Context, mark weir.Call) error {
	marked, err := d.engine.Do(ctx, mark)
	if err != nil && mark.Op == weir.OpTake && weir.WasCounted(err) != weir.CountedNo {
		d.doubts.add(mark)
	}
	if err != nil || marked.Decision.Allowed {
		return err
	}
	if d.memory == nil {
		return ErrToken
	}
	rule := mark.Requests[0].Rule.Name()
	before := overflowOf(d.memory, rule)
	again, err := d.engine.Peek(ctx, mark.Requests...)
	if err == nil && !again.Allowed && overflowOf(d.memory, rule) == before {
		return ErrToken
	}
	return cmp.Or(err, ErrCrowded)
}

// overflowOf returns how many marks of a rule were taken on shared states.
func overflowOf(m *weir.Memory, rule string) uint64 {
	for _, r := range m.Stats().Rules {
		if r.Rule == rule {
			return r.Overflow
		}
	}
	return 0
}

// uncounted is an error before anything was counted: without a mark nothing is settled.
type uncounted struct{ error }

func (e uncounted) Unwrap() error          { return e.error }
func (uncounted) WasCounted() weir.Counted { return weir.CountedNo }
