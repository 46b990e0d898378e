package weir

import "context"

// owner keeps subjects under a lock of its own: a Limiter, or the key of a Keyed.
type owner interface {
	// visit lets do see the subject and the time under the lock.
	visit(do func(s *subject, now int64)) error
}

// turns are those that one caller takes of a Pacer, and what it gives back of
// them. Units that a rate counts are spent. Slots of a Concurrency are held while
// the caller works, and given back by their identity.
type turns struct {
	pacer Pacer
	held  holding
}

// holding is what turns hold until the work is done.
type holding struct {
	identity uint64
	taken    bool     // by the turn that was granted last, and not yet in back
	back     []func() // give slots back
}

// take waits for a turn.
func (t *turns) take(ctx context.Context, n int64) error {
	if t.held.identity == 0 {
		t.held.identity = newIdentity()
	}
	err := t.pacer.WaitTurn(ctx, Turn{Cost: n, held: &t.held})
	if err != nil {
		t.done()
	}
	return err
}

// unused gives back n units that were taken and not used. Slots come back when
// all is done.
func (t *turns) unused(n int) {
	if n > 0 && !t.held.any() {
		t.pacer.Record(int64(-n))
	}
}

// done gives back the slots that are held.
func (t *turns) done() {
	for _, back := range t.held.back {
		back()
	}
	t.held.back = nil
}

func (h *holding) any() bool { return len(h.back) > 0 }

// who is the identity that units of a turn are held by; 0 is none.
func (h *holding) who() uint64 {
	if h == nil {
		return 0
	}
	return h.identity
}

// keep notes the slots of a turn of n units that was granted, if it took any.
func (h *holding) keep(o owner, n int64) {
	if h == nil || !h.taken {
		return
	}
	h.taken = false
	h.back = append(h.back, func() { giveBack(o, n, h.identity) })
}

// giveBack gives units back to their subject. A key whose limit has become
// invalid has none.
func giveBack(o owner, n int64, identity uint64) {
	_ = o.visit(func(s *subject, now int64) { s.recordFor(now, -n, identity) })
}
