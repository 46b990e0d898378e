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

// take waits for a turn and takes n units.
func (t *turns) take(ctx context.Context, n int64) error {
	err := t.pacer.WaitTurn(ctx, weir.Turn{Cost: n, Slots: &t.slots})
	if err != nil {
		t.done()
	}
	return err
}

// unused gives back n units that were taken and not used. It does not release slots; done does.
func (t *turns) unused(n int) {
	if n > 0 && !t.slots.Held() {
		t.pacer.Return(int64(n))
	}
}

// done releases the held slots.
func (t *turns) done() { t.slots.Release() }
