package algorithm

// A first window in a word is its start, counted from the base, above its count. Words reach 208 days from the base and
// counts to 1,023. Other states are kept elsewhere.
const (
	firstBits = 10 // bits of the count
	firstMask = 1<<firstBits - 1
	firstEnd  = 1<<(64-firstBits) - 1 // all starts are smaller
)

// AlignWords returns the base.
func (f *FirstWindow) AlignWords(base int64) int64 { return base }

// Pack returns the word of a start and a count.
func (f *FirstWindow) Pack(s State, base int64) (uint64, bool) {
	if s.B == 0 {
		return 0, true
	}
	if s.A < base {
		return 0, false
	}
	return firstWord(uint64(s.A)-uint64(base), s.B)
}

// firstWord returns the word of a start since the base and a count of at least 1.
func firstWord(since uint64, count int64) (uint64, bool) {
	return since<<firstBits | uint64(count), since < firstEnd && count <= firstMask
}

// Unpack returns the start and the count of a word.
func (f *FirstWindow) Unpack(word uint64, base int64) State {
	if word == 0 {
		return f.Fresh()
	}
	return State{A: base + int64(word>>firstBits), B: int64(word & firstMask)}
}

// decideWord decides on the count of the word, like Decide.
func (f *FirstWindow) decideWord(word uint64, base, now, n int64, a *Answer) (next uint64, allowed, ok bool) {
	since := now - base
	if uint64(n) > uint64(f.limit) || now < base || since < 0 {
		return 0, false, false
	}
	start, count := int64(word>>firstBits), int64(word&firstMask)
	left := start + f.period - since
	if count == 0 || left <= 0 {
		start, count, left = since, 0, f.period
	}
	next, ok = word, true
	if allowed = n == 0 || count+n <= f.limit; allowed && n > 0 {
		count += n
		next, ok = firstWord(uint64(start), count)
	}
	if a == nil {
		return next, allowed, ok
	}
	a.Limit, a.Remaining, a.Allowed, a.Changed = f.limit, max(f.limit-count, 0), allowed, allowed && n > 0
	if !allowed {
		a.RetryAfter = left
	}
	if count > 0 {
		a.ResetAfter, a.LimitReset = left, left
	}
	return next, allowed, ok
}

// ResetWord returns the time to the end of an open window.
func (f *FirstWindow) ResetWord(word uint64, base, now int64) (reset int64, ok bool) {
	if word == 0 {
		return 0, true
	}
	return f.left(f.Unpack(word, base), now), true
}
