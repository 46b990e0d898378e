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
	// IdleWord reports whether the state of a word is idle.
	IdleWord(word uint64, base, now int64) bool
	// ResetWord returns the time until the state of a word is idle. ok is false if the word does not tell.
	ResetWord(word uint64, base, now int64) (reset int64, ok bool)
	// TakeWord decides like Take for one part. It returns the next word, and the answer, which says whether the word
	// has changed.
	TakeWord(word uint64, base, now, n int64) (next uint64, a Answer, ok bool)
	// AllowWord decides like Allow for one part.
	AllowWord(word uint64, base, now, n int64) (next uint64, allowed, ok bool)
}

// Rate is what words of a bucket mean: the ticks of a unit, the ticks of a nanosecond, and the units of a leaky bucket
// without delay. For a cycle, Unit is the permits of a cycle. It is zero for other limits.
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

// IsRated reports whether words of the limit mean something only under the rate that wrote them.
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

// takeWord and allowWord decide on the unpacked state of a word, the slow path.
func takeWord(a Worder, word uint64, base, now, n int64) (uint64, Answer, bool) {
	var answer Answer
	s := a.Unpack(word, base)
	TakeOne(a, &s, now, n, 0, &answer)
	if !answer.Changed {
		return word, answer, true
	}
	next, ok := a.Pack(s, base)
	return next, answer, ok
}

func allowWord(a Worder, word uint64, base, now, n int64) (uint64, bool, bool) {
	s := a.Unpack(word, base)
	allowed, _ := Allow(a, &s, now, n)
	if !allowed || n == 0 {
		return word, allowed, true
	}
	next, ok := a.Pack(s, base)
	return next, true, ok
}
