package word

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
)

// Use keeps the Limit of one limit on the column that used it last. The zero Use has none.
type Use struct{ last atomic.Pointer[Limit] }

// On returns the limit on a column, and makes it if the last one was on another.
func (u *Use) On(c *Column, words algorithm.Worder) *Limit {
	if l := u.last.Load(); l != nil && l.Column == c {
		return l
	}
	l := c.Limit(words)
	u.last.Store(l)
	return l
}
