package word

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Single holds the state of one subject under one limit, in one word or two. Allow and Take decide without a lock
// while the state is in the words. Borrow removes the state under the owner's lock; the first word then reads
// table.Elsewhere, which sends every other caller to that lock. A nil Single never decides.
//
// Of a limit whose states are lists, a Single only remembers until when it refuses: see refusals.
type Single struct {
	decider
	pairs    algorithm.Pairer // the limit, if its states need two words
	delays   bool             // Take needs the lock
	returned Words            // the words of the last Return
	refusals
	_     [64]byte      // keeps the words on a cache line of their own
	loans atomic.Uint64 // number of borrows so far; aligns the words
	at    [2]uint64     // the state; only the caller that has made the first Held writes the second
	_     [40]byte
}

// NewSingle returns a Single whose state is borrowed, or nil if it could not decide anything under the limit.
func NewSingle(a algorithm.Algorithm, now int64) *Single {
	words, ok := a.(algorithm.Worder)
	if !ok && algorithm.RefusesQuietly(a) {
		s := &Single{refusals: refusals{list: a}, at: [2]uint64{table.Elsewhere}}
		s.forget()
		return s
	}
	if !ok {
		return nil
	}
	s := &Single{decider: newDecider(words, baseFor(words, now), nil), delays: algorithm.Delays(a), at: [2]uint64{table.Elsewhere}}
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
		if n != 1 && s.refusesCost(s.pair(), 0, now, n) {
			return false, true
		}
		allowed, done = s.allowPair(now, n)
	default:
		if allowed, done = s.allow(&s.at[0], now, n); !done {
			done = s.refuses(now)
		}
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
		return s.takeBoth(now, n, a)
	}
	return s.take(&s.at[0], now, n, a)
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

// allowPair decides like that of a Limit.
func (s *Single) allowPair(now, n int64) (allowed, done bool) {
	b, loans, first := s.tokens, s.loans.Load(), atomic.LoadUint64(&s.at[0])
	if excess := b.Excess(first, 0, s.base, now, n); excess > 0 || excess > -algorithm.PairStep &&
		b.Exceeds(excess, atomic.LoadUint64(&s.at[1])) && s.pair().stood(first, loans) {
		return false, true
	}
	first, held := table.TryHold(&s.at[0])
	if !held {
		if first, held = table.HoldWord(&s.at[0], false); !held {
			return false, false
		}
	}
	next, second, allowed, done := b.AllowPair(first, s.at[1], 0, s.base, now, n)
	if done && allowed {
		first = next
		table.Write(&s.at[1], second)
	}
	table.Write(&s.at[0], first)
	return allowed && done, done
}

// takeBoth decides while it holds the two words, unless takePair has decided.
func (s *Single) takeBoth(now, n int64, a *algorithm.Answer) (done bool) {
	if at := s.pair(); s.takePair(at, at.glimpse(), 0, now, n, a) == decided {
		return true
	}
	first, held := table.HoldWord(&s.at[0], false)
	if !held {
		return false
	}
	next, second, done := s.decidePair(first, s.at[1], 0, now, n, a)
	if done && a.Changed {
		first = next
		table.Write(&s.at[1], second)
	}
	table.Write(&s.at[0], first)
	if !done {
		*a = algorithm.Answer{}
	}
	return done
}

// Borrow moves the state from the words to state, and reports whether it has changed since its Return. It does nothing if the
// state is already borrowed.
func (s *Single) Borrow(state *algorithm.State) (changed bool) {
	if s == nil {
		return false
	}
	s.forget()
	first, held := table.HoldWord(&s.at[0], false)
	if !held {
		return false
	}
	s.loans.Add(1)
	second := s.at[1]
	atomic.StoreUint64(&s.at[0], table.Elsewhere)
	if s.pairs != nil {
		*state = s.pairs.UnpackPair(first, second, s.base)
	} else {
		*state = s.words.Unpack(first, s.base)
	}
	return s.returned != Words{first, second}
}

// Return puts a borrowed state back if it fits in the words.
func (s *Single) Return(state *algorithm.State, now int64) {
	if s != nil && s.list != nil {
		s.note(state, now)
		return
	}
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
		s.returned = Words{first, second}
		table.Write(&s.at[1], second)
		atomic.StoreUint64(&s.at[0], first)
	}
}
