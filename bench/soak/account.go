package main

import (
	"sync/atomic"

	"github.com/weirflow/weir"
)

// account records the use of one key under one rule in one phase: the units admitted and recorded, less those given
// back.
type account struct {
	rule *rule
	key  string
	net  atomic.Int64
	// takesOnly means that all calls on the account are takes.
	takesOnly bool
	// alone means that no call combines it with other accounts; see phase.
	alone bool
}

func (a *account) request(cost int64) weir.Request { return a.rule.For(a.key, cost) }

// took counts a decision of cost units.
func (a *account) took(allowed bool, cost int64) {
	if allowed || a.rule.can.denied {
		a.net.Add(cost)
	}
}

// settle compares the account of a key that was fresh at the start with the engine. While the clock stands still,
// nothing refills, so the key has exactly its capacity less the use. If the clock moved, or is behind an earlier
// reading, only the bound is known.
func (a *account) settle(w *world, p *phase) {
	net := a.net.Load()
	d, ok := w.peek(a.request(0))
	switch {
	case !ok:
	case p.exact():
		if want := max(a.rule.capacity-net, 0); d.Remaining != want || d.Limit < a.rule.capacity {
			w.violated("phase %d, %s, key %q: %d units were used of %d, so %d remain, but the engine reports %d", p.number, a.rule, a.key, net, a.rule.capacity, want, d.Remaining)
		}
	case p.running:
		if most := a.rule.most(p.lo, p.hi); net > most && !a.rule.can.denied {
			w.violated("phase %d, %s, key %q: the engine let %d units be used between %d and %d, above the bound of %d", p.number, a.rule, a.key, net, p.lo, p.hi, most)
		}
	case d.Remaining > max(a.rule.capacity-net, 0):
		w.violated("phase %d, %s, key %q: %d units were used of %d, but with the clock back the engine says %d", p.number, a.rule, a.key, net, a.rule.capacity, d.Remaining)
	}
}

// lasting is a key used in every phase. It stores the units admitted in the latest phases.
type lasting struct {
	account
	total  int64
	lo, hi int64
	recent []stretch
}

// stretch is a phase: the readings of the clock and the units admitted.
type stretch struct{ lo, hi, units int64 }

// mostRecent is the number of phases whose stretches are compared with the bound.
const mostRecent = 200

// settle checks each stretch of phases that ends with this one, and the whole run.
func (l *lasting) settle(w *world, p *phase) {
	units := l.net.Swap(0)
	if len(l.recent) == mostRecent {
		l.recent = append(l.recent[:0], l.recent[1:]...)
	}
	l.recent = append(l.recent, stretch{p.lo, p.hi, units})
	lo, hi, sum := p.lo, p.hi, int64(0)
	for i := len(l.recent) - 1; i >= 0; i-- {
		s := l.recent[i]
		lo, hi, sum = min(lo, s.lo), max(hi, s.hi), sum+s.units
		l.bounded(w, lo, hi, sum)
	}
	if l.total == 0 {
		l.lo, l.hi = p.lo, p.hi
	}
	l.lo, l.hi, l.total = min(l.lo, p.lo), max(l.hi, p.hi), l.total+units
	l.bounded(w, l.lo, l.hi, l.total)
}

func (l *lasting) bounded(w *world, lo, hi, units int64) {
	if most := l.rule.most(lo, hi); units > most {
		w.violated("%s, key %q: the engine admitted %d units between %d and %d, above the bound of %d", l.rule, l.key, units, lo, hi, most)
	}
}
