package algorithm

// LeakyBucket is a queue that lets one unit out every T = period/rate, with
// room for so many waiting. It admits like a token bucket of capacity queue +
// 1, whose TAT is the next free slot, and tells a delay. State: that of
// TokenBucket.
type LeakyBucket struct {
	TokenBucket
	noDelay int64
}

// NewLeakyBucket makes a queue; the first noDelay units in excess pass at once.
func NewLeakyBucket(rate, period, queue, noDelay int64) *LeakyBucket {
	return &LeakyBucket{TokenBucket: *NewTokenBucket(rate, period, queue+1), noDelay: noDelay}
}

// Delay is how long after now the unit taken last is released: its slot, one T
// before the next free one, less the units that need not wait.
func (b *LeakyBucket) Delay(s State, now int64) int64 {
	ahead := b.tat(s, now).sub(b.ticks(now))
	return ahead.sub(mul(b.unit, b.noDelay)).sub(mul(b.unit, 1)).ceilDiv(b.den)
}

// Solitary is true: what delays one limit's units does not delay another's.
func (b *LeakyBucket) Solitary() bool { return true }

// TakeWord is that of the queue, with its delay.
func (b *LeakyBucket) TakeWord(word uint64, base, now, n int64) (uint64, Answer, bool) {
	return takeWord(b, word, base, now, n)
}

// AllowWord admits only what need not be delayed.
func (b *LeakyBucket) AllowWord(word uint64, base, now, n int64) (next uint64, allowed, ok bool) {
	return allowWord(b, word, base, now, n)
}
