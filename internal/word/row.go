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
	return &Row{limits[0].in, limits}
}

// Take decides on the words of h and writes the answer to a, which must be zero. Binding is the index of a limit. done
// is false if the decision needs the lock.
func (r *Row) Take(h table.Hash, now, n int64, a *algorithm.Answer) (done bool) {
	for {
		e := r.in.Claim(h, now)
		if e.None() {
			return false
		}
		var d rowDecision
		if !d.findPlaces(r, e) {
			r.in.Upgrade(h, now)
			continue
		}
		first, held := e.Hold(false)
		if !held {
			if first == table.Moved {
				continue
			}
			return false
		}
		ok := d.decide(r, e, first, now, n, a)
		if ok && a.Changed {
			for i := range r.limits {
				first = store(e, d.places[i], first, d.next[i])
			}
		}
		e.Release(first)
		if !ok {
			*a = algorithm.Answer{}
		}
		return ok
	}
}

// rowDecision is one decision of a Row.
type rowDecision struct {
	places [MaxRow]place
	next   [MaxRow]Words
	rooms  [MaxRow]int64
	resets [MaxRow]int64
	waits  [MaxRow]int64
}

// findPlaces finds the words of each limit. It returns false if the entry needs a newer layout.
func (d *rowDecision) findPlaces(r *Row, e table.Entry) (ok bool) {
	layout := r.in.layoutOf(e)
	for i, l := range r.limits {
		if d.places[i], ok = l.placeIn(layout); !ok {
			return false
		}
	}
	return true
}

// decide decides on a held entry and composes the answer as algorithm.Take does.
func (d *rowDecision) decide(r *Row, e table.Entry, first uint64, now, n int64, a *algorithm.Answer) (ok bool) {
	allowed := true
	for i, l := range r.limits {
		words, result := l.readable(e, d.places[i], first, now)
		if result != decided {
			return false
		}
		one, ok := d.one(l, i, words, now, n)
		if !ok {
			return false
		}
		allowed = allowed && one
	}
	if !allowed && !d.describe(r, e, first, now) {
		return false
	}
	d.compose(r, a)
	a.Allowed, a.Changed = allowed, allowed && n > 0
	return true
}

// one decides on one limit and keeps its part of the answer.
func (d *rowDecision) one(l *Limit, i int, words Words, now, n int64) (allowed, ok bool) {
	var part algorithm.Answer
	if d.next[i], ok = l.decide(words, d.places[i].width, now, n, &part); !ok {
		return false, false
	}
	d.rooms[i], d.resets[i], d.waits[i] = part.Remaining, part.ResetAfter, part.RetryAfter
	return part.Allowed, true
}

// describe replaces the parts of limits that admit by those of their unchanged states, because another limit refuses.
func (d *rowDecision) describe(r *Row, e table.Entry, first uint64, now int64) (ok bool) {
	for i, l := range r.limits {
		if d.waits[i] > 0 {
			continue
		}
		words, _ := l.readable(e, d.places[i], first, now)
		if _, ok := d.one(l, i, words, now, 0); !ok {
			return false
		}
	}
	return true
}

// compose writes the answer of all limits together.
func (d *rowDecision) compose(r *Row, a *algorithm.Answer) {
	tightest, binding := 0, 0
	for i := range r.limits {
		if d.rooms[i] < d.rooms[tightest] {
			tightest = i
		}
		if d.waits[i] > d.waits[binding] {
			binding = i
		}
		a.ResetAfter = max(a.ResetAfter, d.resets[i])
	}
	a.Limit, a.Remaining, a.RetryAfter = r.limits[tightest].words.Capacity(), d.rooms[tightest], d.waits[binding]
	if a.Binding = binding; a.RetryAfter == 0 {
		a.Binding = tightest
	}
}
