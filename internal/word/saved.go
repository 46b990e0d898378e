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
	for i, p := range in.spans {
		placed[i] = Placed{in.columns[i], p.at, p.width}
	}
	return placed
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

// Widest returns the number of words that the states of a column need at most.
func (c *Column) Widest() int {
	if c.rates != nil {
		return 2
	}
	return 1
}

// Insert stores the words of a column in the entry of h, which it makes if there is none. No other caller uses the table.
func (c *Column) Insert(h table.Hash, w Words, now int64) {
	c.in.Claim(h, now)
	c.Put(h, w, now)
}
