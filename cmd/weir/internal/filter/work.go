package filter

import (
	"bytes"
	"context"
)

// begin begins the work on a line, and releases its slot when it is done.
func (t *turns) begin(p piece) {
	t.works.Go(func() {
		defer func() { _ = p.slot.Done(context.WithoutCancel(t.ctx)) }()
		if err := t.work(t.ctx, bytes.TrimSuffix(p.data, []byte("\n"))); err != nil {
			t.grant(grant{}, err)
		}
	})
}

// leave waits for callers and work to end, and gives back the slots of lines that were not begun.
func (t *turns) leave() {
	t.callers.Wait()
	t.works.Wait()
	t.mu.Lock() // a timer may still grant, without a slot
	granted := t.granted
	t.mu.Unlock()
	for _, g := range append(t.ready, granted...) {
		if g.slot != nil {
			_ = g.slot.Cancel(context.WithoutCancel(t.ctx))
		}
	}
}
