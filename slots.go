package weir

// owner keeps subjects under a lock of its own: a Limiter, or the key of a Keyed.
type owner interface {
	// visit lets do see the subject and the time under the lock.
	visit(do func(s *subject, now int64)) error
}

// Slots collect the slots of a Concurrency that one caller acquires by its
// turns: see Turn.Slots. The zero value is ready for use. It is not safe for
// concurrent use.
type Slots struct {
	identity uint64
	taken    bool     // by the turn that was granted last, and not yet in back
	back     []func() // release slots
}

// Held reports whether turns have acquired slots that are not yet released.
// Units of any other limit are spent, and are not held.
func (s *Slots) Held() bool { return len(s.back) > 0 }

// Release releases the slots that are held. It never releases a slot of another
// caller, even if the lease of these slots has expired meanwhile.
func (s *Slots) Release() {
	for _, release := range s.back {
		release()
	}
	s.back = nil
}

// who is the identity that units of a turn are held by; 0 is none.
func (s *Slots) who() uint64 {
	if s == nil {
		return 0
	}
	if s.identity == 0 {
		s.identity = newIdentity()
	}
	return s.identity
}

// keep notes the slots of a turn of n units that was granted, if it took any.
func (s *Slots) keep(o owner, n int64) {
	if s == nil || !s.taken {
		return
	}
	s.taken = false
	s.back = append(s.back, func() { giveBack(o, n, s.identity) })
}

// giveBack gives units back to their subject. A key whose limit has become
// invalid has none.
func giveBack(o owner, n int64, identity uint64) {
	_ = o.visit(func(s *subject, now int64) { s.recordFor(now, -n, identity) })
}
