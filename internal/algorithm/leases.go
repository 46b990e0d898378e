package algorithm

import (
	"cmp"
	"slices"
	"sort"
)

// lease is units held by one identity, or by none if it is 0, until an instant; Never if they do not expire.
type lease struct {
	end      int64
	identity uint64
	units    int64
}

// leases are ordered by end, and leases with the same end by identity. Each takes three numbers in the Log of a
// state.
type leases []int64

const leaseNumbers = 3

// leasesOf returns the leases of a state.
func leasesOf(s *State) leases {
	if s.Log == nil {
		return nil
	}
	return *s.Log
}

func (l leases) len() int { return len(l) / leaseNumbers }

func (l leases) at(i int) lease {
	n := l[leaseNumbers*i : leaseNumbers*(i+1)]
	return lease{end: n[0], identity: uint64(n[1]), units: n[2]}
}

func (l leases) set(i int, x lease) {
	copy(l[leaseNumbers*i:], []int64{x.end, int64(x.identity), x.units})
}

// mostMoved bounds the leases that drop moves.
const mostMoved = 64

// drop removes the first n leases. It moves a few others to the front, so that the whole buffer stays in use and no
// later lease needs another. Many others stay where they are, because moving them takes longer than a new buffer from
// time to time.
func (l leases) drop(n int) leases {
	rest := l[leaseNumbers*n:]
	if rest.len() > mostMoved {
		return rest
	}
	return l[:copy(l, rest)]
}

// with inserts a lease at its place, or adds it to an equal one.
func (l leases) with(held lease) leases {
	at := sort.Search(l.len(), func(i int) bool { return l.at(i).compare(held) >= 0 })
	if at < l.len() && l.at(at).compare(held) == 0 {
		l[leaseNumbers*at+2] += held.units
		return l
	}
	return slices.Insert(l, leaseNumbers*at, held.end, int64(held.identity), held.units)
}

// withUnnamed adds a lease without identity to the first such lease. Both then expire at the later end.
func (l leases) withUnnamed(held lease) leases {
	held.identity = 0
	for i := range l.len() {
		if x := l.at(i); x.identity == 0 {
			held.units += x.units
			held.end = max(held.end, x.end)
			l = slices.Delete(l, leaseNumbers*i, leaseNumbers*(i+1))
			break
		}
	}
	return l.with(held)
}

// without removes up to n units from the leases of identity, those that expire first, and returns the number removed.
func (l leases) without(n int64, identity uint64) (_ leases, released int64) {
	kept := 0
	for i := range l.len() {
		x := l.at(i)
		if x.identity == identity {
			units := min(x.units, n-released)
			released += units
			x.units -= units
		}
		if x.units > 0 {
			l.set(kept, x)
			kept++
		}
	}
	return l[:leaseNumbers*kept], released
}

// compare orders leases by end and then by identity.
func (x lease) compare(y lease) int {
	return cmp.Or(cmp.Compare(x.end, y.end), cmp.Compare(x.identity, y.identity))
}

// restoreLeases checks leases after a write at an instant, and returns their units. A write drops ended leases.
func restoreLeases(numbers []int64, at int64) (l leases, units int64, ok bool) {
	if len(numbers)%leaseNumbers != 0 {
		return nil, 0, false
	}
	l = slices.Clone(leases(numbers))
	for i := range l.len() {
		x := l.at(i)
		ends := x.end == Never || x.end > at && x.end <= AddSaturating(at, maxPeriod)
		if !ends || x.units < 1 || x.units > maxUnits-units || i > 0 && l.at(i-1).compare(x) >= 0 {
			return nil, 0, false
		}
		units += x.units
	}
	return l, units, true
}
