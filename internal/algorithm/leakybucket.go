package algorithm

// LeakyBucket is a queue that releases one unit every T = period/rate and has room for queue waiting units. It admits
// like a token bucket of capacity queue + 1 whose TAT is the next free slot, and returns a delay. State: that of
// TokenBucket.
type LeakyBucket struct {
	TokenBucket
	noDelay int64

	// free is how far TAT may lie ahead of now without a delay for the last unit.
	free mixed
}

// NewLeakyBucket returns a queue whose first noDelay excess units pass at once.
func NewLeakyBucket(rate, period, queue, noDelay int64) *LeakyBucket {
	b := &LeakyBucket{TokenBucket: *NewTokenBucket(rate, period, queue+1), noDelay: noDelay}
	b.free, _ = mixedOf(mul(min(noDelay, queue)+1, b.unit), b.den) // at most the time of the burst
	return b
}

// Delay returns the time from now to the release of the last unit taken: its slot, one T before the next free one,
// less the units that need not wait.
func (b *LeakyBucket) Delay(s State, now int64) int64 {
	ahead := b.tat(s, now).sub(b.ticks(now))
	return ahead.sub(mul(b.unit, b.noDelay)).sub(mul(b.unit, 1)).ceilDiv(b.den)
}

// Solitary returns true: a delay of one limit does not delay the units of another.
func (b *LeakyBucket) Solitary() bool { return true }

// TakeWord decides like the bucket and adds the delay.
func (b *LeakyBucket) TakeWord(word uint64, base, now, n int64) (next uint64, a Answer, ok bool) {
	ahead, _, ok := b.ahead(word, base, now, n)
	if !ok || b.burstTime.less(ahead) {
		return takeWord(b, word, base, now, n)
	}
	next, ok = b.DecideWord(word, base, now, n, &a)
	if after := ahead.add(b.cost(n), b.den); a.Changed && b.free.less(after) {
		a.Delay = after.sub(b.free, b.den).ceil()
	}
	return next, a, ok
}

// AllowWord admits only a cost that needs no delay.
func (b *LeakyBucket) AllowWord(word uint64, base, now, n int64) (next uint64, allowed, ok bool) {
	ahead, at, ok := b.ahead(word, base, now, n)
	if !ok {
		return allowWord(b, word, base, now, n)
	}
	ahead = ahead.add(b.cost(n), b.den)
	if b.free.less(ahead) {
		return word, false, true
	}
	next, ok = b.word(at, ahead)
	return next, true, ok
}
