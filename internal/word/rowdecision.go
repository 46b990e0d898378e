package word

import (
	"math"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// rowDecision is one decision on the words of several limits in an entry.
type rowDecision struct {
	parts   [MaxRow]rowPart
	count   int
	n       int64
	refused bool
}

// rowPart is one limit of the decision.
type rowPart struct {
	limit         *Limit
	span          span
	first, second uint64
	next          Words
	answer        algorithm.Answer // of the limit alone
}

// decide decides on the limits of a row.
func (d *rowDecision) decide(r *Row, e table.Entry, first uint64, now, n int64) result {
	layout := r.in.layoutOf(e)
	d.count, d.n = len(r.limits), n
	for i, l := range r.limits {
		p := &d.parts[i]
		p.limit, p.span = l, layout.spans[l.index]
		words := p.span.read(first, e.Words[1:])
		if result := l.settled(words.First, now); result != decided {
			return result
		}
		var ok bool
		if p.next, ok = l.decide(words, p.span.width, now, n, &p.answer); !ok {
			return slow
		}
		p.first, p.second = words.First, words.Second
		d.refused = d.refused || !p.answer.Allowed
	}
	return decided
}

// compose writes the answer of all limits together, as algorithm.Take does. Binding is the index of a part. ok is
// false if the decision needs the lock.
func (d *rowDecision) compose(now int64, a *algorithm.Answer) (ok bool) {
	tightest, binding, changed := 0, 0, false
	room, wait, reset := int64(math.MaxInt64), int64(0), int64(0)
	for i := range d.parts[:d.count] {
		p := &d.parts[i]
		if p.answer.Changed && d.refused && !p.untake(now, d.n) {
			return false
		}
		changed = changed || p.answer.Changed
		if p.answer.Remaining < room {
			tightest, room = i, p.answer.Remaining
		}
		if p.answer.RetryAfter > wait {
			binding, wait = i, p.answer.RetryAfter
		}
		reset = max(reset, p.answer.ResetAfter)
		a.Delay = max(a.Delay, p.answer.Delay) // only of a limit alone
	}
	a.Allowed, a.Changed = !d.refused, changed && !d.refused
	a.Limit, a.Remaining, a.RetryAfter, a.ResetAfter = d.parts[tightest].limit.Words().Capacity(), room, wait, reset
	if a.Binding = binding; wait == 0 {
		a.Binding = tightest
	}
	return true
}

// untake describes the unchanged words of a limit that admits, because another limit refuses. The cost took its units
// of the room, which is exact: what takes units in words leaves a room of at least 0.
func (p *rowPart) untake(now, n int64) (ok bool) {
	p.answer.Remaining += n
	switch p.limit.Words().(type) {
	case *algorithm.FixedWindow, *algorithm.Cycle, *algorithm.Quota: // any count ends with its window
		if p.answer.Remaining == p.answer.Limit {
			p.answer.ResetAfter = 0
		}
		return true
	}
	word := p.first
	if p.span.width == 2 {
		word = algorithm.PairExpiry(p.first, p.second)
	}
	p.answer.ResetAfter, ok = p.limit.Words().ResetWord(word, p.limit.base, now)
	return ok
}

// stands reports whether all words on which d has decided were in the entry at one instant, if nobody has borrowed it
// meanwhile. Each word was read before the second of three reads of the first word, and is read again behind it. Words that
// are the same both times were there at that read, when no caller held the entry: a decision only writes words that the
// entry has never had. The second word of a bucket may come back, but not while the first stays; so it is read between two
// reads of the first.
func (d *rowDecision) stands(e table.Entry, first uint64) bool {
	return e.First() == first && d.isOf(e) && e.First() == first
}

// isOf reports whether the entry has the words on which d has decided, except for its first word.
func (d *rowDecision) isOf(e table.Entry) bool {
	for i := range d.count {
		p := &d.parts[i]
		if p.span.width == 2 && atomic.LoadUint64(&e.Words[p.span.at+1]) != p.second {
			return false
		}
		if p.span.at > 0 && atomic.LoadUint64(&e.Words[p.span.at]) != p.first {
			return false
		}
	}
	return true
}

// store writes the words of the limits that take units to the held entry, and returns its first word.
func (d *rowDecision) store(e table.Entry, first uint64) uint64 {
	for i := range d.count {
		if p := &d.parts[i]; p.answer.Changed {
			first = p.span.write(e, first, p.next)
		}
	}
	return first
}
