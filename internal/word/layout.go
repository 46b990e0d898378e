package word

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Words is the state of a key under one limit: a word, or the two of a bucket (see algorithm.Pairer).
type Words struct {
	First, Second uint64
	Wide          bool // there are two
}

// layout maps the words of an entry to columns. It is immutable.
type layout struct {
	number  uint8
	columns []*Column
	spans   []span // by column
	width   int
}

// span is where an entry keeps the words of a column.
type span struct{ at, width uint8 }

// read returns the words at a span of an entry. rest are the words of the entry behind the first one.
func (p span) read(first uint64, rest []uint64) Words {
	w := Words{First: first, Wide: p.width == 2}
	if p.at > 0 {
		w.First = atomic.LoadUint64(&rest[p.at-1])
	}
	if w.Wide {
		w.Second = atomic.LoadUint64(&rest[p.at])
	}
	return w
}

// write stores words at a span of a seized entry, and returns its first word.
func (p span) write(e table.Entry, first uint64, w Words) (next uint64) {
	if p.width == 2 {
		w.widen()
		atomic.StoreUint64(&e.Words[p.at+1], w.Second)
	}
	if p.at == 0 {
		return w.First
	}
	atomic.StoreUint64(&e.Words[p.at], w.First)
	return first
}

// with returns a layout with another column, or with a column of another width.
func (l *layout) with(c *Column, width uint8) *layout {
	next := &layout{columns: append([]*Column(nil), l.columns...)}
	widths := make([]uint8, len(l.spans), len(l.spans)+1)
	for i, p := range l.spans {
		widths[i] = p.width
	}
	if c.index == len(widths) {
		next.columns, widths = append(next.columns, c), append(widths, width)
	}
	widths[c.index] = width
	for _, w := range widths {
		next.spans = append(next.spans, span{uint8(next.width), w})
		next.width += int(w)
	}
	return next
}

// Width returns the number of words.
func (l *layout) Width() int { return l.width }

// Idle reports whether every column is idle.
func (l *layout) Idle(first uint64, rest []uint64, now int64) bool {
	now = algorithm.AddSaturating(now, -idleGrace)
	for i, c := range l.columns {
		words := l.spans[i].read(first, rest)
		if words.First == table.Elsewhere {
			return false
		}
		word := words.First
		if words.Wide {
			word = algorithm.PairExpiry(words.First, words.Second)
		}
		if !algorithm.IdleWord(c.like, word, c.Base, now) {
			return false
		}
	}
	return true
}

// Convert copies the words of each column, and widens those that have become pairs.
func (l *layout) Convert(from table.Layout, first uint64, rest, into []uint64) {
	earlier := from.(*layout)
	for i, p := range earlier.spans {
		words, to := p.read(first, rest), l.spans[i]
		if to.width == 2 {
			words.widen()
			into[to.at+1] = words.Second
		}
		into[to.at] = words.First
	}
}

// widen makes two words of the one that the first rate of a column wrote.
func (w *Words) widen() {
	if !w.Wide && w.First != table.Elsewhere {
		w.First, w.Second = algorithm.WidenWord(w.First, 0)
	}
	w.Wide = true
}

// fits reports whether an entry of the layout can hold words of a column.
func (l *layout) fits(c *Column, w Words) bool {
	return c.index < len(l.spans) && (!w.Wide || l.spans[c.index].width == 2)
}

// read returns the words of a column of a seized or lent entry. first is the first word of the entry.
func (l *layout) read(c *Column, e table.Entry, first uint64) Words {
	if c.index >= len(l.spans) {
		return Words{}
	}
	return l.spans[c.index].read(first, e.Words[1:])
}

// write stores words of a column that fit in a seized entry, and returns its first word.
func (l *layout) write(c *Column, e table.Entry, first uint64, w Words) (next uint64) {
	return l.spans[c.index].write(e, first, w)
}
