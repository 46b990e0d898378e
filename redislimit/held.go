package redislimit

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// Hold renews the leases of slots that were taken after since, until release is called. It closes lost when Redis no
// longer has a slot, when no renewal succeeds in time, and when the engine is closed.
func (e *Engine) Hold(since time.Time, slots weir.Call) (lost <-chan struct{}, release func()) {
	return e.holds.Hold(since, e.slots(slots))
}

// Drop releases slots whose take had no answer. It repeats the release until the lease ends, and does not wait for the
// answers.
func (e *Engine) Drop(slots weir.Call) { e.holds.Drop(e.slots(slots)) }

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
