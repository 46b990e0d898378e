package main

import (
	"sync/atomic"

	"github.com/weirflow/weir"
)

// account is a key that all workers take from in one phase, and the units that they were admitted.
type account struct {
	rule *rule
	key  string
	net  atomic.Int64
}

func (a *account) request(cost int64) weir.Request { return a.rule.For(a.key, cost) }

// took counts a decision of cost units.
func (a *account) took(allowed bool, cost int64) {
	if allowed || a.rule.denied {
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
		if most := a.rule.most(p.lo, p.hi); net > most && !a.rule.denied {
			w.violated("phase %d, %s, key %q: the engine let %d units be used between %d and %d, above the bound of %d", p.number, a.rule, a.key, net, p.lo, p.hi, most)
		}
	case d.Remaining > max(a.rule.capacity-net, 0):
		w.violated("phase %d, %s, key %q: %d units were used of %d, but with the clock back the engine says %d", p.number, a.rule, a.key, net, a.rule.capacity, d.Remaining)
	}
}
