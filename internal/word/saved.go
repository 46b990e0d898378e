package word

import (
	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Placed is a column of a layout, and its words there.
type Placed struct {
	*Column
	At, Width uint8
}

// ColumnsOf returns the columns of a layout of a Table.
func ColumnsOf(l table.Layout) []Placed {
	in := l.(*layout)
	placed := make([]Placed, len(in.columns))
	for i, p := range in.places {
		placed[i] = Placed{in.columns[i], p.at, p.width}
	}
	return placed
}

// Newest returns the layout of new entries.
func (t *Table) Newest() table.Layout { return t.newest.Load() }

// IsElsewhere reports whether the state of a column is not in the words of an entry.
func IsElsewhere(columns []Placed, words []uint64) bool {
	for _, c := range columns {
		if words[c.At] == table.Elsewhere {
			return true
		}
	}
	return false
}

// ReadRow appends the hash and the words of an entry to into, without words that are Elsewhere. The caller holds the
// lock of the shard, so that no entry is borrowed. It appends nothing if no word is left.
func (t *Table) ReadRow(h table.Hash, into []uint64) ([]uint64, table.Layout) {
	for {
		e := t.Find(h)
		if e.None() {
			return into, t.Newest()
		}
		layout := t.layoutOf(e)
		first, held := e.Hold(true)
		if !held {
			continue
		}
		row := append(append(into, uint64(h), first), e.Words[1:]...)
		e.Release(first)
		words, rest := row[len(into)+1:], uint64(0)
		for _, p := range layout.places {
			if words[p.at] == table.Elsewhere {
				words[p.at] = table.Fresh
			}
			rest |= words[p.at]
		}
		if rest == table.Fresh {
			row = into
		}
		return row, layout
	}
}

// Rates returns the rates that wrote the states of a column, by number, from a number on.
func (c *Column) Rates(from int) (list []algorithm.Rate) {
	if c.rates == nil && algorithm.IsRated(c.like) {
		return []algorithm.Rate{algorithm.RateOf(c.like)}[min(from, 1):]
	}
	if c.rates != nil {
		for _, w := range (*c.rates.writers.Load())[from:] {
			list = append(list, algorithm.RateOf(w))
		}
	}
	return list
}

// AddRate numbers a saved rate. ok is false if the column cannot have it.
func (c *Column) AddRate(rate algorithm.Rate) (number uint64, ok bool) {
	if c.rates == nil {
		return 0, rate == algorithm.RateOf(c.like)
	}
	writer, ok := algorithm.WithRate(c.like, rate)
	if !ok {
		return 0, false
	}
	n, ok := c.rates.number(writer.(algorithm.Pairer))
	return uint64(n), ok
}

// Saved returns the words of a saved row under a column with its present base. number translates the numbers of
// rates. ok is false if no state has these words; w is Fresh if the state is idle now.
func (c *Column) Saved(words []uint64, base, now int64, numbers []uint64) (w Words, ok bool) {
	w.First = words[0]
	if w.First == table.Fresh {
		return Words{}, len(words) == 1 || words[1] == 0
	}
	if c.rates == nil {
		return c.savedWord(w, base, now)
	}
	if len(words) == 2 {
		w.Second = words[1]
	} else {
		w = widen(w.First)
	}
	saved := algorithm.RateNumber(w.First)
	if w.First >= table.Held || saved >= len(numbers) {
		return Words{}, false
	}
	like := c.rates.writer(int(numbers[saved]))
	if len(words) == 1 {
		if again, ok := algorithm.NarrowPair(w.First, w.Second, algorithm.RateOf(like).Den); !ok || again != words[0] {
			return Words{}, false
		}
	}
	state := like.UnpackPair(w.First, w.Second, base)
	if first, second, ok := like.PackPair(state, uint64(saved), base); !ok || first != w.First || second != w.Second {
		return Words{}, false
	}
	if c.idleAt(algorithm.PairExpiry(w.First, w.Second), state, base, now) {
		return Words{}, true
	}
	w.First, w.Second, ok = like.PackPair(state, numbers[saved], c.Base)
	return w, ok
}

func (c *Column) savedWord(w Words, base, now int64) (_ Words, ok bool) {
	state := c.like.Unpack(w.First, base)
	if again, ok := c.like.Pack(state, base); !ok || again != w.First {
		return Words{}, false
	}
	if c.idleAt(w.First, state, base, now) {
		return Words{}, true
	}
	w.First, ok = c.like.Pack(state, c.Base)
	return w, ok
}

func (c *Column) idleAt(word uint64, state algorithm.State, base, now int64) bool {
	if base == c.Base {
		return c.like.IdleWord(word, base, now)
	}
	return algorithm.Idle(c.like, state, now)
}

// PutSaved stores saved words in a row of the newest layout.
func (c *Column) PutSaved(w Words, row []uint64) (ok bool) {
	p := c.in.newest.Load().places[c.index]
	if p.width == 2 {
		row[p.at], row[p.at+1] = w.First, w.Second
		return true
	}
	row[p.at], ok = c.narrow(w)
	return ok
}

// Place returns the first word of the column in the newest layout.
func (c *Column) Place() uint8 { return c.in.newest.Load().places[c.index].at }
