package word

import (
	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Row decides on several limits of one key at once, on the words of one entry. Nothing is written unless all admit.
type Row struct {
	in     *Table
	limits []*Limit
}

// MaxRow is the largest number of limits of a Row.
const MaxRow = 4

// NewRow returns the row of limits, or nil if they are too many or not of one table.
func NewRow(limits []*Limit) *Row {
	if len(limits) > MaxRow {
		return nil
	}
	for _, l := range limits {
		if l == nil || l.in != limits[0].in || !l.numbered {
			return nil
		}
	}
	return newRow(limits[0].in, limits)
}

func newRow(in *Table, limits []*Limit) *Row { return &Row{in, limits} }

// Take decides on the words of h and writes the answer to a, which must be zero. Binding is the index of a limit. done
// is false if the decision needs the lock.
//
// It decides on words that it reads without a hold, like takePair.
func (r *Row) Take(h table.Hash, now, n int64, a *algorithm.Answer) (done bool) {
	for {
		e, ok := r.claim(h, now)
		if !ok {
			return false
		}
		if result := r.take(e, h, now, n, a); result != moved {
			return result == decided
		}
		*a = algorithm.Answer{}
	}
}

func (r *Row) take(e table.Entry, h table.Hash, now, n int64, a *algorithm.Answer) result {
	var d rowDecision
	loans, first := r.in.loans[h%table.Shards].Load(), e.First()
	result := settled(first)
	if result == decided {
		result = d.decide(r, e, first, now, n)
	}
	if result == decided && !d.compose(now, a) {
		result = slow
	}
	switch {
	case result != decided:
	case !a.Changed:
		if !d.stands(e, first) || r.in.loans[h%table.Shards].Load() != loans {
			return moved
		}
	case !e.Swap(first, table.Held):
		return moved
	default:
		if !d.isOf(e) {
			e.Release(first)
			return moved
		}
		e.Release(d.store(e, first))
	}
	return result
}

// claim returns the entry of h, with a span for each limit. ok is false if there is no room for it.
func (r *Row) claim(h table.Hash, now int64) (e table.Entry, ok bool) {
	for {
		if e = r.in.Claim(h, now); e.None() {
			return e, false
		}
		if r.fits(e) {
			return e, true
		}
		r.in.Upgrade(h, now)
	}
}

func (r *Row) fits(e table.Entry) bool {
	in := r.in.layoutOf(e)
	for _, l := range r.limits {
		if _, ok := l.spanIn(in); !ok {
			return false
		}
	}
	return true
}
