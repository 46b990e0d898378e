package word

import (
	"math"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// decision is one decision on the words of several limits, in one entry or several.
type decision struct {
	seen    []seen // entries; the first ones are read
	parts   []part // the parts of all of them, in order
	entries int    // that are read
	count   int    // of parts of these
	peeks   bool   // nothing is written, and the answer describes the words as they are
	refused bool
}

// seen is an entry as it was when its words were read.
type seen struct {
	entry       table.Entry
	lent, first uint64 // the loans so far, read first, and the first word
	from, to    int    // its parts
}

// part is one limit of the decision.
type part struct {
	limit         *Limit
	span          span
	cost          int64
	first, second uint64
	next          Words
	answer        algorithm.Answer // the limit's alone
}

// look decides on the limits of the next ask, each alone, in the entry of its key. One without a span for each limit moves.
func (d *decision) look(q *Ask, e table.Entry, now int64) result {
	s := &d.seen[d.entries]
	d.entries++
	s.entry, s.lent, s.first, s.from = e, q.loans().Load(), e.First(), d.count
	if result := settled(s.first); result != decided {
		return result
	}
	layout := q.Row.in.layoutOf(e)
	for _, l := range q.Row.limits {
		p := &d.parts[d.count]
		d.count++
		var ok bool
		if p.span, ok = l.spanIn(layout); !ok {
			q.Row.in.Upgrade(q.Key, now)
			return moved
		}
		p.limit, p.cost = l, q.Cost
		words := p.span.read(s.first, e.Words[1:])
		if result := l.settled(words.First, now); result != decided {
			return result
		}
		if p.next, ok = l.decide(words, p.span.width, now, q.Cost, &p.answer); !ok {
			return slow
		}
		p.first, p.second = words.First, words.Second
		d.refused = d.refused || !p.answer.Allowed
	}
	s.to = d.count
	return decided
}

// finish writes the answer of all limits together, and the words of an admission, if they are still those that d has seen.
func (d *decision) finish(asks []Ask, now int64, a *algorithm.Answer) result {
	switch {
	case !d.compose(now, a):
		return slow
	case a.Changed && d.write():
	case a.Changed || !d.stands(asks):
		return moved
	}
	return decided
}

// compose writes the answer of all limits together, as algorithm.Take does. Binding is the index of a part. ok is
// false if the decision needs the lock.
func (d *decision) compose(now int64, a *algorithm.Answer) (ok bool) {
	tightest, binding, changed := 0, 0, false
	room, wait, reset := int64(math.MaxInt64), int64(0), int64(0)
	for i := range d.parts {
		p := &d.parts[i]
		if p.answer.Changed && (d.refused || d.peeks) && !p.untake(now) {
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
	a.Allowed, a.Changed = !d.refused, changed && !d.refused && !d.peeks
	a.Limit, a.Remaining, a.RetryAfter, a.ResetAfter = d.parts[tightest].limit.Words().Capacity(), room, wait, reset
	if a.Binding = binding; wait == 0 {
		a.Binding = tightest
	}
	a.LimitReset = d.parts[a.Binding].answer.ResetAfter
	return true
}

// untake describes the unchanged words of a limit that admits, because another limit refuses or it is a peek. The cost took its units
// of the room, which is exact: what takes units in words leaves a room of at least 0.
func (p *part) untake(now int64) (ok bool) {
	if _, constant := p.limit.Words().(algorithm.Constant); constant { // which takes nothing
		return true
	}
	p.answer.Remaining += p.cost
	switch p.limit.Words().(type) {
	case *algorithm.FixedWindow, *algorithm.FirstWindow, *algorithm.Cycle, *algorithm.Quota: // any count ends with its window
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

// stands reports whether all words that d has decided on were in their entries at one instant, if no caller has borrowed
// these meanwhile. Each word was read before the second of three reads of its first word, and all are read again behind
// the last entry. Words that are the same both times were there between, when no caller had seized an entry: a decision
// only writes words that the entry has never had. The second word of a bucket may come back, but not while the first
// stays; so it is read between two reads of the first.
func (d *decision) stands(asks []Ask) bool {
	for i := range asks {
		s := &d.seen[i]
		if s.entry.First() != s.first || !d.isOf(s) || s.entry.First() != s.first || asks[i].loans().Load() != s.lent {
			return false
		}
	}
	return true
}

// write writes the words of the limits that take units, if all entries have the words that d has decided on. A last
// entry whose only word matters is not seized: it changes while the others are.
func (d *decision) write() bool {
	last := &d.seen[len(d.seen)-1]
	seized, p := len(d.seen), &d.parts[last.from]
	if last.to-last.from == 1 && p.span == (span{width: 1}) {
		seized--
	}
	if !d.seize(seized) {
		return false
	}
	if seized < len(d.seen) && !last.entry.Swap(last.first, p.next.First) {
		d.release(seized)
		return false
	}
	d.store(seized)
	return true
}

// seize seizes the first n entries if they have the words that d has decided on. Otherwise it seizes none. It waits for
// no other caller, which may be waiting for it.
func (d *decision) seize(n int) bool {
	for i := range n {
		s := &d.seen[i]
		seized := s.entry.Swap(s.first, table.Seized)
		if seized && d.isOf(s) {
			continue
		}
		if seized {
			i++
		}
		d.release(i)
		return false
	}
	return true
}

// release gives the first n entries back as they were.
func (d *decision) release(n int) {
	for i := range n {
		d.seen[i].entry.Release(d.seen[i].first)
	}
}

// isOf reports whether an entry has the words that d has decided on, except for its first word.
func (d *decision) isOf(s *seen) bool {
	for i := s.from; i < s.to; i++ {
		p := &d.parts[i]
		if p.span.width == 2 && atomic.LoadUint64(&s.entry.Words[p.span.at+1]) != p.second {
			return false
		}
		if p.span.at > 0 && atomic.LoadUint64(&s.entry.Words[p.span.at]) != p.first {
			return false
		}
	}
	return true
}

// store writes the words of the limits that take units to the first n entries, which are seized, and releases these.
func (d *decision) store(n int) {
	for i := range n {
		s := &d.seen[i]
		first := s.first
		for j := s.from; j < s.to; j++ {
			if p := &d.parts[j]; p.answer.Changed {
				first = p.span.write(s.entry, first, p.next)
			}
		}
		s.entry.Release(first)
	}
}
