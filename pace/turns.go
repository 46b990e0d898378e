package pace

import (
	"context"

	"github.com/weirflow/weir"
)

// turns takes turns of a Pacer for one caller, and holds their slots until the
// work is done.
type turns struct {
	pacer Pacer
	slots weir.Slots
}

// take waits for a turn.
func (t *turns) take(ctx context.Context, n int64) error {
	err := t.pacer.WaitTurn(ctx, weir.Turn{Cost: n, Slots: &t.slots})
	if err != nil {
		t.done()
	}
	return err
}

// unused gives back n units that were taken and not used. Slots are released by
// done.
func (t *turns) unused(n int) {
	if n > 0 && !t.slots.Held() {
		t.pacer.Record(int64(-n))
	}
}

// done releases the slots that are held.
func (t *turns) done() { t.slots.Release() }
