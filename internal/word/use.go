package word

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
)

// Use finds the Limit of one limit on the column that it last decided on. The zero Use has none. It holds the Limit of
// the first column itself, so that a decision under one of many limits reads its memory without waiting for a pointer.
type Use struct {
	last    atomic.Pointer[Limit]
	_       [40]byte // aligns first, where the compiled limits of a Keyed have a Use behind their key
	first   Limit
	claimed atomic.Bool // first has a column, or will have one
}

// On returns the limit on a column, or nil if it has not decided on the column last.
func (u *Use) On(c *Column) *Limit {
	if u.last.Load() == &u.first && u.first.Column == c {
		return &u.first
	}
	return u.lastOn(c)
}

func (u *Use) lastOn(c *Column) *Limit {
	if l := u.last.Load(); l != nil && l.Column == c {
		return l
	}
	return nil
}

// Begin returns the limit on a column, which On returns from now on.
func (u *Use) Begin(c *Column, words algorithm.Worder) *Limit {
	if u.claimed.CompareAndSwap(false, true) {
		u.first.init(c, words)
		u.last.Store(&u.first)
		return &u.first
	}
	l := c.Limit(words)
	if u.last.Load() != nil { // otherwise another caller is about to store first
		u.last.Store(l)
	}
	return l
}
