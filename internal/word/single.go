package word

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Single holds the state of one subject under one limit. Allow and Take decide without a lock while the state is in
// the word. Borrow removes the state under the owner's lock; the word then reads table.Elsewhere, which sends every
// other caller to that lock. A nil Single never decides.
type Single struct {
	decider
	delays bool     // Take needs the lock
	_      [80]byte // keeps the word on a cache line of its own
	word   atomic.Uint64
	_      [56]byte
}

// NewSingle returns a Single whose state is borrowed, or nil if the limit's states do not fit in a word.
func NewSingle(a algorithm.Algorithm, now int64) *Single {
	words, ok := a.(algorithm.Worder)
	if !ok {
		return nil
	}
	s := &Single{decider: newDecider(words, baseFor(words, now), nil), delays: algorithm.Delays(a)}
	s.word.Store(table.Elsewhere)
	return s
}

// Allow decides on the word. done is false if the decision needs the lock.
func (s *Single) Allow(now, n int64) (allowed, done bool) {
	if s != nil && n > 0 {
		allowed, done = s.allow(&s.word, now, n)
	}
	return allowed, done
}

// Take decides like Allow and writes the whole answer to a, which must be zero. A limit with delays needs the lock,
// whose owner records the release time.
func (s *Single) Take(now, n int64, a *algorithm.Answer) (done bool) {
	if s == nil || n < 1 || s.delays {
		return false
	}
	return s.take(&s.word, now, n, a)
}

// Borrow removes the state from the word and returns it. ok is false if the state is already borrowed.
func (s *Single) Borrow() (_ algorithm.State, ok bool) {
	if s == nil {
		return algorithm.State{}, false
	}
	word := s.word.Swap(table.Elsewhere)
	if word == table.Elsewhere {
		return algorithm.State{}, false
	}
	return s.words.Unpack(word, s.base), true
}

// Return puts a borrowed state back if it fits in a word.
func (s *Single) Return(state algorithm.State, now int64) {
	if s == nil {
		return
	}
	if word, ok := algorithm.PackSettled(s.words, state, s.base, now); ok {
		s.word.Store(word)
	}
}
