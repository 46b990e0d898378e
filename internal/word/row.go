package word

import (
	"runtime"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Row decides on several limits of one key at once, on the words of one entry. Nothing is written unless all admit.
type Row struct {
	in     *Table
	limits []*Limit
}

// MaxRow is the largest number of limits of a Row, and of all rows of TakeAll.
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
	return &Row{limits[0].in, limits}
}

// Take decides on the words of h and writes the answer to a, which must be zero. Binding is the index of a limit. done
// is false if the decision needs the lock.
func (r *Row) Take(h table.Hash, now, n int64, a *algorithm.Answer) (done bool) {
	for {
		e, ok := r.claim(h, now)
		if !ok {
			return false
		}
		first, held := e.Hold(false)
		if !held {
			if first == table.Moved {
				continue
			}
			return false
		}
		var d rowDecision
		if done = d.decide(r, e, first, now, n) && d.compose(now, a); a.Changed {
			first = d.store(e, first, 0, len(r.limits))
		}
		e.Release(first)
		return done
	}
}

// claim returns the entry of h, with a place for each limit. ok is false if there is no room for it.
func (r *Row) claim(h table.Hash, now int64) (e table.Entry, ok bool) {
	for {
		if e = r.in.Claim(h, now); e.None() {
			return e, false
		}
		if r.fits(r.in.layoutOf(e)) {
			return e, true
		}
		r.in.Upgrade(h, now)
	}
}

func (r *Row) fits(in *layout) bool {
	for _, l := range r.limits {
		if _, ok := l.placeIn(in); !ok {
			return false
		}
	}
	return true
}

// Ask is cost N of the key of a hash under the limits of a row.
type Ask struct {
	Row  *Row
	Hash table.Hash
	N    int64
}

// TakeAll decides on all asks at once and writes the answer to a, which must be zero. Binding is the index of an ask.
// It takes nothing unless all are admitted. The rows have at most MaxRow limits together. done is false if the decision
// needs the locks.
//
// It holds all entries while it decides. It waits for another caller only before it holds any, so no two callers wait
// for each other. If it often finds an entry held, the locks decide.
func TakeAll(asks []Ask, now int64, a *algorithm.Answer) (done bool) {
	for range 16 {
		var entries [MaxRow]table.Entry
		for i, q := range asks {
			e, ok := q.Row.claim(q.Hash, now)
			if !ok || isAmong(e, entries[:i]) {
				return false
			}
			entries[i] = e
		}
		firsts, r := holdAll(entries[:len(asks)])
		switch r {
		case moved:
			runtime.Gosched()
		case slow:
			return false
		default:
			return takeHeld(asks, &entries, &firsts, now, a)
		}
	}
	return false
}

// isAmong reports whether e is one of the entries, which one caller cannot hold twice.
func isAmong(e table.Entry, entries []table.Entry) bool {
	for i := range entries {
		if &entries[i].Words[0] == &e.Words[0] {
			return true
		}
	}
	return false
}

// holdAll holds all entries, or none: then the result is moved if the caller should try again, and otherwise slow.
func holdAll(entries []table.Entry) (firsts [MaxRow]uint64, r result) {
	for i, e := range entries {
		first, held := e.First(), false
		switch {
		case i == 0:
			first, held = e.Hold(false)
		case first < table.Held:
			held = e.Swap(first, table.Held)
		}
		if held {
			firsts[i] = first
			continue
		}
		for j := range i {
			entries[j].Release(firsts[j])
		}
		if first == table.Elsewhere {
			return firsts, slow
		}
		return firsts, moved
	}
	return firsts, decided
}

// takeHeld decides on entries that the caller holds, and releases them.
func takeHeld(asks []Ask, entries *[MaxRow]table.Entry, firsts *[MaxRow]uint64, now int64, a *algorithm.Answer) (done bool) {
	var d rowDecision
	for i, q := range asks {
		if done = d.decide(q.Row, entries[i], firsts[i], now, q.N); !done {
			break
		}
	}
	done = done && d.compose(now, a)
	from, binding := 0, 0
	for i, q := range asks {
		if a.Changed {
			firsts[i] = d.store(entries[i], firsts[i], from, len(q.Row.limits))
		}
		if from <= a.Binding {
			binding = i
		}
		from += len(q.Row.limits)
		entries[i].Release(firsts[i])
	}
	a.Binding = binding
	return done
}
