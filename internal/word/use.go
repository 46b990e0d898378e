package word

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
)

// Use finds the Limit of one limit on a column. The zero Use has none. It holds the Limit of the first column itself, so
// that a decision under one of many limits reads its memory without waiting for a pointer.
type Use struct {
	column atomic.Pointer[Column] // of first, once first is made
	last   atomic.Pointer[Limit]  // on another column
	_      [32]byte               // aligns first, where the compiled limits of a Keyed have a Use behind their key
	first  Limit
	begun  atomic.Bool // first has a column, or will have one
}

// OnFirst returns the limit on the first column, or nil for any other one. The compiler inlines it.
func (u *Use) OnFirst(c *Column) *Limit {
	if u.column.Load() == c {
		return &u.first
	}
	return nil
}

// On returns the limit on a column. It makes one, unless it did so for this column first or last.
func (u *Use) On(c *Column, words algorithm.Worder) *Limit {
	if l := u.OnFirst(c); l != nil {
		return l
	}
	if l := u.last.Load(); l != nil && l.Column == c {
		return l
	}
	if u.begun.CompareAndSwap(false, true) {
		u.first.init(c, words)
		u.column.Store(c)
		return &u.first
	}
	l := c.Limit(words)
	if u.column.Load() != nil { // otherwise another caller is about to make first, maybe on this column
		u.last.Store(l)
	}
	return l
}
