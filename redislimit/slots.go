package redislimit

import (
	"cmp"
	"context"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// KeepSlots renews the leases of slots that were taken after since, until release is called. It closes lost when Redis no
// longer has a slot, when no renewal succeeds in time, and when the engine is closed.
func (e *Engine) KeepSlots(since time.Time, slots weir.Call) (lost <-chan struct{}, release func()) {
	return e.keeper.KeepSlots(since, e.slots(slots))
}

// Renew restarts the leases of slots, if all of them are still held. On a cluster, it may restart some of several leases
// although others are lost.
func (e *Engine) Renew(ctx context.Context, slots weir.Call) (held bool, err error) {
	for _, p := range e.slots(slots) {
		s := calls.NewSubmission(wire.Decision{Op: wire.OpRenew, Parts: []wire.Part{p}})
		if err := cmp.Or(e.calls.Ask(ctx, s), s.Decisions[0].Err); err != nil {
			return false, cannotDecide(wire.OpRenew.String(), err)
		}
		if held = s.Decisions[0].Admitted; !held {
			return false, nil
		}
	}
	return held, nil
}

// slots returns the parts of a call that hold slots under an identity.
func (e *Engine) slots(c weir.Call) (held []wire.Part) {
	merged, err := enginekit.Merge(weir.OpTake, c.Requests)
	if err != nil {
		return nil
	}
	parts, _, err := e.parts(nil, merged, c.Lease)
	if err != nil {
		return nil
	}
	for _, p := range parts {
		if p.IsHeld() {
			held = append(held, p)
		}
	}
	return held
}
