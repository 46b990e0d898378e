package algorithm

// Worder is an Algorithm most of whose states fit in one word, so that they can be kept in a table and changed by
// compare-and-swap. Times in words count from a base that the caller chooses; they reach nine years from it. ok is
// false for a state that does not fit in a word and must be kept elsewhere.
//
// The word 0 is a new key. No word equals one of the two largest.
type Worder interface {
	Algorithm
	// AlignWords returns the base near base to pass to the other functions.
	AlignWords(base int64) int64
	// Pack returns s as a word.
	Pack(s State, base int64) (word uint64, ok bool)
	// Unpack returns the state of a word.
	Unpack(word uint64, base int64) State
	// ResetWord returns the time until the state of a word is idle. ok is false if the word does not tell.
	ResetWord(word uint64, base, now int64) (reset int64, ok bool)
}

// IdleWord reports whether the state of a word is idle.
func IdleWord(a Worder, word uint64, base, now int64) bool {
	if reset, ok := a.ResetWord(word, base, now); ok {
		return reset == 0
	}
	return Idle(a, a.Unpack(word, base), now)
}

// Behind returns how far before an instant the base must lie, for words written until then: the oldest state that is not
// idle begins behind it. Words of a first window reach less far, and its period is enough.
func Behind(a Worder) int64 {
	if f, ok := a.(*FirstWindow); ok {
		return f.period
	}
	return 2 * maxPeriod
}

// Rate is the meaning of the words of a bucket: the ticks of a unit, the ticks of a nanosecond, and the units of a leaky
// bucket without delay. For a cycle, Unit is the permits of a cycle. It is zero for other limits.
type Rate struct{ Unit, Den, NoDelay int64 }

// RateOf returns the rate of the words of a limit.
func RateOf(a Worder) Rate {
	switch a := a.(type) {
	case *TokenBucket:
		return Rate{Unit: a.unit, Den: a.den}
	case *LeakyBucket:
		return Rate{Unit: a.unit, Den: a.den, NoDelay: a.noDelay}
	case *Cycle:
		return Rate{Unit: a.limit}
	}
	return Rate{}
}

// WithRate returns a limit like a whose words have a rate. ok is false if no limit like a has that rate.
func WithRate(a Worder, r Rate) (_ Worder, ok bool) {
	valid := r.Unit >= 1 && r.Unit <= maxUnit && r.Den >= 1 && r.Den <= maxUnits && gcd(r.Unit, r.Den) == 1
	switch a := a.(type) {
	case *TokenBucket:
		if valid && r.NoDelay == 0 {
			return NewTokenBucket(r.Den, r.Unit, a.burst), true
		}
		return nil, false
	case *LeakyBucket:
		if valid && r.NoDelay >= 0 && r.NoDelay <= maxUnits {
			return NewLeakyBucket(r.Den, r.Unit, a.burst-1, r.NoDelay), true
		}
		return nil, false
	case *Cycle:
		if r.Unit >= 1 && r.Unit <= maxUnits && r == (Rate{Unit: r.Unit}) {
			return NewCycle(r.Unit, a.period, a.origin), true
		}
		return nil, false
	}
	return a, r == Rate{}
}

// IsRated reports whether words of the limit have a meaning only under the rate that wrote them.
func IsRated(a Worder) bool { return RateOf(a) != Rate{} }

// maxUnit bounds the ticks of a unit: the longest period.
const maxUnit = 1 << 55

// wordTime is the number of bits of a time in ns in a word: nine years.
const wordTime = 58

// relative returns t as the time in a word: 1 to 2^58 - 2.
func relative(t, base int64) (int64, bool) {
	r := t - base
	return r, t >= base && r > 0 && r < 1<<wordTime-2
}

// WordDecider decides on the words of one limit. Buckets and windows decide on most words as they are; a direct call
// keeps their answer on the stack.
type WordDecider struct {
	limit   Worder
	window  *FixedWindow // also of a cycle
	Bucket  *TokenBucket // of either kind. A caller may ask DecideWord of this and the next first, with one call less
	Sliding *SlidingWindow
	quota   *Quota
	first   *FirstWindow
}

// NewWordDecider returns that of a limit.
func NewWordDecider(limit Worder) WordDecider {
	d := WordDecider{limit: limit}
	switch l := limit.(type) {
	case *TokenBucket:
		d.Bucket = l
	case *LeakyBucket:
		d.Bucket = &l.TokenBucket
	case *FixedWindow:
		d.window = l
	case *Cycle:
		d.window = &l.window
	case *SlidingWindow:
		d.Sliding = l
	case *Quota:
		d.quota = l
	case *FirstWindow:
		d.first = l
	}
	return d
}

// Words returns the limit.
func (d *WordDecider) Words() Worder { return d.limit }

// Decide decides like Take for one part, and writes the answer to a, which must be zero. Without an a, it decides like
// Allow. next is the word itself if nothing changes. If ok is false, the next state does not fit in a word, and a means
// nothing.
func (d *WordDecider) Decide(word uint64, base, now, n int64, a *Answer) (next uint64, allowed, ok bool) {
	switch {
	case a == nil && n < 1:
	case d.Bucket != nil:
		next, allowed, ok = d.Bucket.DecideWord(word, base, now, n, a)
	case d.window != nil:
		next, allowed, ok = d.window.decideWord(word, base, now, n, a)
	case d.Sliding != nil:
		next, allowed, ok = d.Sliding.DecideWord(word, base, now, n, a)
	case d.quota != nil:
		next, allowed, ok = d.quota.decideWord(word, base, now, n, a)
	case d.first != nil:
		next, allowed, ok = d.first.decideWord(word, base, now, n, a)
	}
	if ok {
		return next, allowed, true
	}
	return d.decideState(word, base, now, n, a)
}

// decideState decides on the unpacked state of a word, the slow path.
func (d *WordDecider) decideState(word uint64, base, now, n int64, a *Answer) (next uint64, allowed, ok bool) {
	s := d.limit.Unpack(word, base)
	allowed, changed := decideOn(d.limit, &s, now, n, a)
	if !changed {
		return word, allowed, true
	}
	next, ok = d.limit.Pack(s, base)
	return next, allowed, ok
}

// decideOn decides on a state, in place, like Decide.
func decideOn(limit Algorithm, s *State, now, n int64, a *Answer) (allowed, changed bool) {
	if a == nil {
		return Allow(limit, s, now, n)
	}
	*a = Answer{}
	TakeOne(limit, s, now, n, 0, a)
	return a.Allowed, a.Changed
}
