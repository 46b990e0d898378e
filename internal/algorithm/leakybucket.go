package algorithm

// LeakyBucket is a queue that lets one unit out every T = period/rate, with
// room for so many waiting. It admits like a token bucket of capacity queue +
// 1, whose TAT is the next free slot, and tells a delay. State: that of
// TokenBucket.
type LeakyBucket struct {
	TokenBucket
	noDelay int64

	// Where a unit takes whole ns: how far TAT may lie ahead of now before the
	// unit taken last is delayed.
	free int64
}

// NewLeakyBucket makes a queue; the first noDelay units in excess pass at once.
func NewLeakyBucket(rate, period, queue, noDelay int64) *LeakyBucket {
	b := &LeakyBucket{TokenBucket: *NewTokenBucket(rate, period, queue+1), noDelay: noDelay}
	if b.whole {
		b.free = b.unit * (min(noDelay, queue) + 1) // at most what the burst takes
	}
	return b
}

// Delay is how long after now the unit taken last is released: its slot, one T
// before the next free one, less the units that need not wait.
func (b *LeakyBucket) Delay(s State, now int64) int64 {
	ahead := b.tat(s, now).sub(b.ticks(now))
	return ahead.sub(mul(b.unit, b.noDelay)).sub(mul(b.unit, 1)).ceilDiv(b.den)
}

// Solitary is true: what delays one limit's units does not delay another's.
func (b *LeakyBucket) Solitary() bool { return true }

// TakeWord is that of the bucket, with the delay. Where a unit takes whole ns,
// TAT lies ahead by what the answer says that all takes to pass.
func (b *LeakyBucket) TakeWord(word uint64, base, now, n int64) (next uint64, a Answer, ok bool) {
	if !b.whole {
		return takeWord(b, word, base, now, n)
	}
	next, ok = b.DecideWord(word, base, now, n, &a)
	if a.Changed {
		a.Delay = max(a.ResetAfter-b.free, 0)
	}
	return next, a, ok
}

// AllowWord admits only what need not be delayed.
func (b *LeakyBucket) AllowWord(word uint64, base, now, n int64) (next uint64, allowed, ok bool) {
	tat, at, ok := b.wholeWord(word, base, now, n)
	if !ok {
		return allowWord(b, word, base, now, n)
	}
	if tat += n * b.unit; tat-at > b.free {
		return word, false, true
	}
	return uint64(tat) << fractionBits, true, tat < 1<<wordTime-2
}
