package algorithm

// LeakyBucket is a queue that releases one unit every T = period/rate and has room for queue waiting units. It admits
// like a token bucket of capacity queue + 1 whose TAT is the next free slot, and returns a delay. State: that of
// TokenBucket. The newest promised instant is that of the newest release.
type LeakyBucket struct {
	TokenBucket
	noDelay int64
}

// NewLeakyBucket returns a queue whose first noDelay excess units pass at once.
func NewLeakyBucket(rate, period, queue, noDelay int64) *LeakyBucket {
	b := &LeakyBucket{TokenBucket: *NewTokenBucket(rate, period, queue+1), noDelay: noDelay}
	b.whole = -1
	b.free = mixedOf(mul(min(noDelay, queue)+1, b.unit), b.den) // at most the time of the burst
	return b
}

// Delay returns the time from now to the release of the last unit taken: its slot, one T before the next free one,
// less the units that need not wait.
func (b *LeakyBucket) Delay(s State, now int64) int64 {
	ahead := b.tat(&s, now).sub(b.ticks(now))
	return ahead.sub(mul(b.unit, b.noDelay)).sub(mul(b.unit, 1)).ceilDiv(b.den)
}

// release returns when the last unit taken is released.
func (b *LeakyBucket) release(s *State) int64 {
	slot := int128{s.A, uint64(s.B)}.sub(mul(b.unit, b.noDelay)).sub(mul(b.unit, 1))
	if slot.positive() {
		return slot.ceilDiv(b.den)
	}
	return -int128{}.sub(slot).floorDiv(b.den)
}

// Wait returns the time until the queue has room. A promised instant delays later units, but does not refuse them.
func (b *LeakyBucket) Wait(s State, now, n int64) int64 { return b.wait(&s, now, n) }

// Room returns the room of the queue.
func (b *LeakyBucket) Room(s State, now int64) int64 { return b.room(&s, now) }

// Give moves TAT back by nT, but not behind now.
func (b *LeakyBucket) Give(s State, now, n int64) State { return b.give(s, now, now, n) }

// Book takes n units and promises their release.
func (b *LeakyBucket) Book(s State, now, n int64) State {
	s = b.Take(s, now, n)
	return promise(s, now, b.Delay(s, now))
}

// Rebook takes keep units in place of n.
func (b *LeakyBucket) Rebook(before, after State, taken, n, keep int64) State {
	if !b.owns(&before) || !b.owns(&after) {
		return b.TokenBucket.Rebook(before, after, taken, n, keep)
	}
	return b.Book(before, taken, keep)
}

// SpendAt returns from: a unit that waits for its release was admitted before.
func (b *LeakyBucket) SpendAt(_ State, from, _ int64) int64 { return from }

// Settled reports whether the newest promised instant has passed or is the release that a word holds.
func (b *LeakyBucket) Settled(s State, now int64) bool {
	release := b.release(&s)
	return s.Promised == release || s.Promised <= now && release <= now
}

// Unpack returns the state of a word, which also holds the newest release.
func (b *LeakyBucket) Unpack(word uint64, base int64) State {
	s := b.TokenBucket.Unpack(word, base)
	if word != 0 {
		s.Promised = b.release(&s)
	}
	return s
}

// Solitary returns true: a delay of one limit does not delay the units of another.
func (b *LeakyBucket) Solitary() bool { return true }
