package word

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Single holds the state of one subject under one limit, in one word or two. Allow and Take decide without a lock
// while the state is in the words. Borrow removes the state under the owner's lock; the first word then reads
// table.Elsewhere, which sends every other caller to that lock. A nil Single never decides.
type Single struct {
	decider
	pairs    algorithm.Pairer // the limit, if its states need two words
	delays   bool             // Take needs the lock
	returned Words            // the words of the last Return
	_        [64]byte         // keeps the words on a cache line of their own
	loans    atomic.Uint64    // number of borrows so far; aligns the words
	at       [2]uint64        // the state; only the caller that has made the first Seized writes the second
	_        [40]byte
}

// NewSingle returns a Single whose state is borrowed, or nil if it could not decide anything under the limit.
func NewSingle(a algorithm.Algorithm, now int64) *Single {
	words, ok := a.(algorithm.Worder)
	if !ok {
		return nil
	}
	d := decider{WordDecider: algorithm.NewWordDecider(words), base: baseFor(words, now)}
	s := &Single{decider: d, delays: algorithm.Delays(a), at: [2]uint64{table.Elsewhere}}
	if p, ok := a.(algorithm.Pairer); ok && algorithm.RateOf(p).NeedsPair() {
		s.pairs = p
	}
	return s
}

// Allow decides on the words. done is false if the decision needs the lock.
func (s *Single) Allow(now, n int64) (allowed, done bool) {
	if s == nil || n < 1 {
		return false, false
	}
	return s.decideOn(now, n, nil)
}

// Take decides like Allow and writes the whole answer to a, which must be zero. A limit with delays needs the lock,
// whose owner records the release time.
func (s *Single) Take(now, n int64, a *algorithm.Answer) (done bool) {
	if s == nil || n < 1 || s.delays {
		return false
	}
	_, done = s.decideOn(now, n, a)
	return done
}

func (s *Single) decideOn(now, n int64, a *algorithm.Answer) (allowed, done bool) {
	for r := moved; r == moved; done = r == decided {
		if s.pairs == nil {
			allowed, r = s.take(&s.at[0], now, n, a)
		} else {
			allowed, r = s.takePair(s.pair(), s.pair().glimpse(), 0, now, n, a)
		}
	}
	return allowed, done
}

// Within decides on a turn that may wait for longest and that Allow has refused. Either the cost was taken after all and
// need is 0, or need is known to be longer than longest. done is false if the turn may wait, which needs the lock.
func (s *Single) Within(now, n, longest int64) (need int64, done bool) {
	var a algorithm.Answer
	if longest == algorithm.Never || !s.Take(now, n, &a) {
		return 0, false
	}
	return a.RetryAfter, a.Allowed || tooLong(&a, longest)
}

// tooLong reports that the wait of a refusal is known and above longest.
func tooLong(a *algorithm.Answer, longest int64) bool {
	return a.RetryAfter > longest && a.RetryAfter < algorithm.Never
}

func (s *Single) pair() pair { return pair{&s.at, &s.loans} }

// Borrow moves the state from the words to state, and reports whether it has changed since its Return. It does nothing if the
// state is already borrowed.
func (s *Single) Borrow(state *algorithm.State) (changed bool) {
	if s == nil {
		return false
	}
	first, seized := table.SeizeWord(&s.at[0], false)
	if !seized {
		return false
	}
	s.loans.Add(1)
	second := s.at[1]
	atomic.StoreUint64(&s.at[0], table.Elsewhere)
	*state = s.Words().Unpack(first, s.base)
	if s.pairs != nil {
		*state = s.pairs.UnpackPair(first, second, s.base)
	}
	return s.returned != Words{First: first, Second: second}
}

// Return puts a borrowed state back if it fits in the words.
func (s *Single) Return(state *algorithm.State, now int64) {
	if s == nil || !s.Words().Settled(*state, now) {
		return
	}
	var first, second uint64
	var ok bool
	if s.pairs != nil {
		first, second, ok = s.pairs.PackPair(*state, 0, s.base)
	} else {
		first, ok = s.Words().Pack(*state, s.base)
	}
	if ok {
		s.returned = Words{First: first, Second: second}
		atomic.StoreUint64(&s.at[1], second)
		atomic.StoreUint64(&s.at[0], first)
	}
}
