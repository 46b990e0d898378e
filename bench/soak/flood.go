package main

import (
	"fmt"
	"sync/atomic"
)

// floods send new keys without end under rules of their own, while the clock stands still. They are admitted at most
// the capacity of the keys that have room and of the groups that the others share.
type floods struct {
	rules    []*rule
	admitted []atomic.Int64
	next     atomic.Int64
	each     int64 // new keys of each worker for each rule
	known    []*account
}

// groups is the number of states that keys without room share.
const groups = 256

// newFloods first uses some keys, which find room. It never gives back a unit of each, so they stay known and are
// decided exactly.
func newFloods(s *soaking, p *phase) *floods {
	w := s.world
	f := &floods{rules: s.flooded, admitted: make([]atomic.Int64, len(s.flooded))}
	f.each = int64(3 * w.config.maxKeys / w.config.workers)
	if s.random.IntN(2) == 0 {
		f.each /= 8 // the table only grows
	}
	for _, r := range f.rules {
		for i := range 4 {
			a := s.fresh(p, r, i)
			before := w.overflowOf(r)
			d, ok := w.take(a.request(1))
			roomless := w.overflowOf(r) > before
			if !ok || roomless || !d.Allowed {
				s.begun = s.begun[:len(s.begun)-1]
				continue
			}
			a.net.Store(1)
			f.known = append(f.known, a)
			p.accounts = append(p.accounts, a)
		}
	}
	return f
}

// pour sends new keys under each rule.
func (f *floods) pour(w *world) {
	for range f.each {
		n := f.next.Add(1)
		for i, r := range f.rules {
			q := r.For(fmt.Sprintf("flood %d at %d", n, w.now.Load()), 1+n%3)
			if d, ok := w.take(q); ok && d.Allowed {
				f.admitted[i].Add(q.Cost)
			}
			if w.config.Fault == hoardedKeys {
				w.keep(q.Key)
			}
		}
	}
}

// settle checks that a flood was admitted at most the capacity of all states.
func (f *floods) settle(w *world, p *phase) {
	for i, r := range f.rules {
		got, most := f.admitted[i].Load(), (int64(w.config.maxKeys)+groups)*r.capacity
		if got > most {
			w.violated("phase %d: a flood of %d keys of %s was admitted %d units while the clock stood, above %d keys and %d groups of %d", p.number, f.next.Load(), r, got, w.config.maxKeys, groups, r.capacity)
		}
	}
}

// keep commits a fault: memory that grows with the keys.
func (w *world) keep(key string) {
	w.reports.Lock()
	defer w.reports.Unlock()
	w.hoard = append(w.hoard, append(make([]byte, 0, 4096), key...))
}
