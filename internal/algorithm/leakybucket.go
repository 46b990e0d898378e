package algorithm

// LeakyBucket is a queue that lets one unit out every T = period/rate, with
// room for so many waiting. It admits like a token bucket of capacity queue +
// 1, whose TAT is the next free slot, and tells a delay. State: that of
// TokenBucket.
type LeakyBucket struct {
	TokenBucket
	noDelay int64

	// How far TAT may lie ahead of now before the unit taken last is delayed.
	free mixed
}

// NewLeakyBucket makes a queue; the first noDelay units in excess pass at once.
func NewLeakyBucket(rate, period, queue, noDelay int64) *LeakyBucket {
	b := &LeakyBucket{TokenBucket: *NewTokenBucket(rate, period, queue+1), noDelay: noDelay}
	b.free, _ = mixedOf(mul(min(noDelay, queue)+1, b.unit), b.den) // at most what the burst takes
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

// TakeWord is that of the bucket, with the delay.
func (b *LeakyBucket) TakeWord(word uint64, base, now, n int64) (next uint64, a Answer, ok bool) {
	ahead, _, ok := b.ahead(word, base, now, n)
	if !ok || b.most.less(ahead) {
		return takeWord(b, word, base, now, n)
	}
	next, ok = b.DecideWord(word, base, now, n, &a)
	if after := ahead.add(b.cost(n), b.den); a.Changed && b.free.less(after) {
		a.Delay = after.sub(b.free, b.den).ceil()
	}
	return next, a, ok
}

// AllowWord admits only what need not be delayed.
func (b *LeakyBucket) AllowWord(word uint64, base, now, n int64) (next uint64, allowed, ok bool) {
	ahead, at, ok := b.ahead(word, base, now, n)
	if !ok {
		return allowWord(b, word, base, now, n)
	}
	return b.admit(b.free, word, ahead, at, n)
}
