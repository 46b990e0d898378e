package word

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Table holds the states of many keys as words: one entry for each key, with a column for each limit. A Limit decides
// on its column, and a Row on several columns at once, without a lock. Other operations borrow the entry under the lock
// of the key's shard; its first word then reads table.Elsewhere, which sends every other caller to that lock. So does a
// column whose word reads table.Elsewhere, because its state does not fit in its words.
type Table struct {
	*table.Table
	mu      sync.Mutex // of columns and layouts
	columns []*Column
	layouts [table.MaxWidth + 1]atomic.Pointer[layout] // by number; each is wider than the one before
	newest  atomic.Pointer[layout]
	loans   [table.Shards]atomic.Uint64 // number of loans so far
}

// idleGrace is how long an idle key stays in its table, so that a key used again soon need not be inserted again.
const idleGrace = int64(time.Second)

// NewTable returns a table without columns. A maxKeys of 0 means no bound.
func NewTable(maxKeys int) *Table {
	t := &Table{}
	first := &layout{}
	t.newest.Store(first)
	t.layouts[0].Store(first)
	t.Table = table.New(table.Options{Layout: first, MaxKeys: maxKeys})
	return t
}

// Column is the states of all keys of a table under limits with the same identity.
type Column struct {
	// Base is the origin of times in the words.
	Base  int64
	in    *Table
	index int
	like  algorithm.Worder // a limit of the column; idle states are idle under all of them
	rates *rates           // of buckets; otherwise nil
}

// Table returns the table of the column.
func (c *Column) Table() *Table { return c.in }

// AddColumn returns a new column for limits like one, or nil if an entry has no room for it.
func (t *Table) AddColumn(like algorithm.Worder, now int64) *Column {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &Column{Base: baseFor(like, now), in: t, index: len(t.columns), like: like}
	width := uint8(1)
	if p, ok := like.(algorithm.Pairer); ok {
		c.rates = newRates(p)
		if algorithm.RateOf(p).NeedsPair() {
			width = 2
		}
	}
	if !t.setWidth(c, width) {
		return nil
	}
	t.columns = append(t.columns, c)
	return c
}

// setWidth makes a layout in which the column has the width, and reports whether an entry has room for it.
func (t *Table) setWidth(c *Column, width uint8) bool {
	next := t.newest.Load().with(c, width)
	if next.width > table.MaxWidth {
		return false
	}
	next.number = t.newest.Load().number + 1
	t.layouts[next.number].Store(next)
	t.AddLayout(next)
	t.newest.Store(next)
	return true
}

// Widen makes a layout in which a bucket's column has two words, and reports whether an entry has room for them.
func (c *Column) Widen() bool {
	t := c.in
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.isWide() || t.setWidth(c, 2)
}

// isWide reports whether entries have two words for the column, or will have them.
func (c *Column) isWide() bool { return c.in.newest.Load().spans[c.index].width == 2 }

func (t *Table) layoutOf(e table.Entry) *layout { return t.layouts[e.Layout].Load() }

// Pack returns a state as words. ok is false if they cannot tell all of it.
func (l *Limit) Pack(s algorithm.State, now int64) (w Words, ok bool) {
	c := l.Column
	if !l.Words().Settled(s, now) {
		return w, false
	}
	if !l.numbered {
		return Words{}, false
	}
	if l.pairs == nil || !c.isWide() {
		w.First, ok = l.Words().Pack(s, c.Base)
		return w, ok
	}
	w.Wide = true
	w.First, w.Second, ok = l.pairs.PackPair(s, uint64(l.number), c.Base)
	return w, ok
}

// Unpack returns the state of words that are not Elsewhere.
func (l *Limit) Unpack(w Words) algorithm.State {
	switch {
	case l.pairs == nil:
		return l.Words().Unpack(w.First, l.Base)
	case !w.Wide:
		return l.rates.writer(0).Unpack(w.First, l.Base)
	}
	return l.rates.writer(algorithm.RateNumber(w.First)).UnpackPair(w.First, w.Second, l.Base)
}
