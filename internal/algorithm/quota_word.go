package algorithm

import "math"

// A quota in a word is the second of its last admission, counted from 1 at the base, above its count. All limits of one
// unit read it alike.
const (
	nanoSecond = 1_000_000_000 // words are in nanoseconds

	quotaBits = 64 - 29 // bits of the count; 2^29 seconds are 17 years
	quotaMask = 1<<quotaBits - 1
	quotaEnd  = 1<<(64-quotaBits) - 1 // all seconds are smaller
)

// AlignWords returns the second of the base.
func (q *Quota) AlignWords(base int64) int64 { return alignedTo(base, nanoSecond) }

// Pack returns the word of a second and a count.
func (q *Quota) Pack(s State, base int64) (uint64, bool) {
	if s.A == math.MinInt64 {
		return 0, s.B == 0
	}
	return quotaWord(s.A-base/nanoSecond, s.B)
}

// quotaWord returns the word of a second since the base and a count.
func quotaWord(since, count int64) (uint64, bool) {
	second := uint64(since) + 1
	return second<<quotaBits | uint64(count), since >= 0 && second < quotaEnd && uint64(count) <= quotaMask
}

// Unpack returns the second and the count of a word.
func (q *Quota) Unpack(word uint64, base int64) State {
	if word == 0 {
		return q.Fresh()
	}
	return State{A: base/nanoSecond + int64(word>>quotaBits) - 1, B: int64(word & quotaMask)}
}

// decideWord decides on the count of the word, like Decide.
func (q *Quota) decideWord(word uint64, base, now, n int64, a *Answer) (next uint64, allowed, ok bool) {
	if uint64(n) > uint64(q.limit) || now < base {
		return 0, false, false
	}
	w, count, stored := q.window(now), int64(0), int64(word>>quotaBits)-1
	if last := base + stored*nanoSecond; word != 0 && last >= w.start {
		if last >= w.end { // time has run back
			return 0, false, false
		}
		count = int64(word & quotaMask)
	}
	next, ok = word, true
	if allowed = n == 0 || count+n <= q.limit; allowed && n > 0 {
		count += n
		next, ok = quotaWord(max(stored, int64(uint64(now-base)/nanoSecond)), count)
	}
	if a == nil {
		return next, allowed, ok
	}
	a.Limit, a.Remaining, a.Allowed, a.Changed = q.limit, max(q.limit-count, 0), allowed, allowed && n > 0
	if !allowed {
		a.RetryAfter = w.left(now)
	}
	if count > 0 {
		a.ResetAfter = w.left(now)
		a.LimitReset = a.ResetAfter
	}
	return next, allowed, ok
}

// ResetWord returns false: a word is kept beyond the window of one limit.
func (q *Quota) ResetWord(uint64, int64, int64) (reset int64, ok bool) { return 0, false }
