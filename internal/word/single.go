package word

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Single is the state of one subject under one limit. Allow and Take decide
// without a lock while the state is in the word. Borrow takes it out, under the
// lock of the owner: then the word reads table.Elsewhere, which sends every other
// caller to the same lock. A nil Single decides nothing.
type Single struct {
	words algorithm.Worder
	base  int64
	_     [104]byte // the word has a cache line to itself
	word  atomic.Uint64
	_     [56]byte
}

// NewSingle makes a Single whose state is borrowed; nil if states of the limit
// fit no words.
func NewSingle(a algorithm.Algorithm, now int64) *Single {
	words, ok := a.(algorithm.Worder)
	if !ok {
		return nil
	}
	s := &Single{words: words, base: baseFor(words, now)}
	s.word.Store(table.Elsewhere)
	return s
}

// Allow decides on the word; it is not done if that takes the lock.
func (s *Single) Allow(now, n int64) (allowed, done bool) {
	if s == nil || n < 1 {
		return false, false
	}
	allowed, r := allow(s.words, nil, &s.word, s.base, now, n)
	return allowed, r == decided
}

// Take is Allow with the whole answer, written to a, which is zero. A unit with
// a delay takes the lock, whose owner remembers the instant it was given.
func (s *Single) Take(now, n int64, a *algorithm.Answer) (done bool) {
	if s == nil || n < 1 || algorithm.Delays(s.words) {
		return false
	}
	return take(s.words, nil, &s.word, s.base, now, n, a) == decided
}

// Borrow takes the state out of the word, if it is there.
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

// Return puts a borrowed state back, if it fits a word.
func (s *Single) Return(state algorithm.State) {
	if s == nil {
		return
	}
	if word, ok := s.words.Pack(state, s.base); ok {
		s.word.Store(word)
	}
}
