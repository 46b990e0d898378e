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
	pairs  algorithm.Pairer // the limit, if its states need two words
	delays bool             // Take needs the lock
	_      [64]byte         // keeps the words on a cache line of their own
	_      [0]atomic.Uint64 // aligns the words
	first  uint64
	second uint64 // of the caller that has made the first word Held
	_      [48]byte
}

// NewSingle returns a Single whose state is borrowed, or nil if the limit's states do not fit in words.
func NewSingle(a algorithm.Algorithm, now int64) *Single {
	words, ok := a.(algorithm.Worder)
	if !ok {
		return nil
	}
	s := &Single{decider: newDecider(words, baseFor(words, now), nil), delays: algorithm.Delays(a), first: table.Elsewhere}
	if p, ok := a.(algorithm.Pairer); ok && algorithm.RateOf(p).NeedsPair() {
		s.pairs = p
	}
	return s
}

// Allow decides on the words. done is false if the decision needs the lock.
func (s *Single) Allow(now, n int64) (allowed, done bool) {
	switch {
	case s == nil || n < 1:
	case s.pairs != nil:
		allowed, done = s.allowPair(now, n)
	default:
		allowed, done = s.allow(&s.first, now, n)
	}
	return allowed, done
}

// Take decides like Allow and writes the whole answer to a, which must be zero. A limit with delays needs the lock,
// whose owner records the release time.
func (s *Single) Take(now, n int64, a *algorithm.Answer) (done bool) {
	switch {
	case s == nil || n < 1 || s.delays:
		return false
	case s.pairs != nil:
		return s.takePair(now, n, a)
	}
	return s.take(&s.first, now, n, a)
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

// allowPair decides on two words. It does not hold them for a refusal that the first word tells.
func (s *Single) allowPair(now, n int64) (allowed, done bool) {
	b, first := s.tokens, atomic.LoadUint64(&s.first)
	if first < table.Held && b.RefusesPair(first, 0, s.base, now, n) {
		return false, true
	}
	first, held := table.TryHold(&s.first)
	if !held {
		if first, held = table.HoldWord(&s.first, false); !held {
			return false, false
		}
	}
	next, second, allowed, done := b.AllowPair(first, s.second, 0, s.base, now, n)
	if done && allowed {
		first, s.second = next, second
	}
	table.Write(&s.first, first)
	return allowed && done, done
}

// takePair decides like allowPair and writes the whole answer.
func (s *Single) takePair(now, n int64, a *algorithm.Answer) (done bool) {
	first, held := table.HoldWord(&s.first, false)
	if !held {
		return false
	}
	next, second, done := s.decidePair(first, s.second, 0, now, n, a)
	if done && a.Changed {
		first, s.second = next, second
	}
	table.Write(&s.first, first)
	if !done {
		*a = algorithm.Answer{}
	}
	return done
}

// Borrow moves the state from the words to state. It does nothing if the state is already borrowed.
func (s *Single) Borrow(state *algorithm.State) {
	if s == nil {
		return
	}
	first, held := table.HoldWord(&s.first, false)
	if !held {
		return
	}
	second := s.second
	atomic.StoreUint64(&s.first, table.Elsewhere)
	if s.pairs != nil {
		*state = s.pairs.UnpackPair(first, second, s.base)
	} else {
		*state = s.words.Unpack(first, s.base)
	}
}

// Return puts a borrowed state back if it fits in the words.
func (s *Single) Return(state *algorithm.State, now int64) {
	if s == nil || !algorithm.IsSettled(s.words, *state, now) {
		return
	}
	var first, second uint64
	var ok bool
	if s.pairs != nil {
		first, second, ok = s.pairs.PackPair(*state, 0, s.base)
	} else {
		first, ok = s.words.Pack(*state, s.base)
	}
	if ok {
		s.second = second
		atomic.StoreUint64(&s.first, first)
	}
}
