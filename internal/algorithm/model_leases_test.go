package algorithm_test

import (
	"math"
	"math/big"
)

// leaseModel is a concurrency limit by section 6: leases with an identity and an end. Like a window, it clamps times
// to the instant of the last write.
type leaseModel struct {
	slots, length *big.Int // a length of 0 means no expiry
	last          *big.Int // nil: fresh
	leases        []leased
	identity      uint64 // of the next operation
}

// leased is units held by an identity until an instant, or permanently if it is nil.
type leased struct {
	identity uint64
	end      *big.Int
	units    *big.Int
}

func newLeaseModel(slots, length int64) *model {
	l := &leaseModel{slots: big.NewInt(slots), length: big.NewInt(length)}
	return &model{definition: l, limit: l.slots}
}

func (l *leaseModel) at(t *big.Int) *big.Int {
	if l.last == nil {
		return t
	}
	return larger(t, l.last)
}

// live returns the leases that have not expired, and their units.
func (l *leaseModel) live(t *big.Int) (leases []leased, units *big.Int) {
	units = new(big.Int)
	for _, x := range l.leases {
		if x.end == nil || x.end.Cmp(l.at(t)) > 0 {
			leases = append(leases, x)
			units = add(units, x.units)
		}
	}
	return leases, units
}

func (l *leaseModel) admits(t, n *big.Int) bool {
	_, units := l.live(t)
	return atMost(add(units, n), l.slots)
}

// take counts up to 2^53 units. Units above twice the slots have no identity. Together with the earliest such units
// they expire at the later of the two ends.
func (l *leaseModel) take(t, n *big.Int) {
	leases, units := l.live(t)
	l.leases, l.last = leases, l.at(t)
	taken := leased{identity: l.identity, units: smaller(n, sub(mostUnits, units))}
	if taken.units.Sign() == 0 {
		return
	}
	if l.length.Sign() > 0 {
		if end := add(l.last, l.length); saturate(end) != math.MaxInt64 {
			taken.end = end // the end of time means never
		}
	}
	if add(units, taken.units).Cmp(times(l.slots, big.NewInt(2))) > 0 {
		taken.identity = 0
		if first := l.first(0); first != nil {
			end := first.end
			for i := range l.leases {
				if x := &l.leases[i]; x.identity == 0 && same(x.end, end) {
					x.end = later(end, taken.end)
				}
			}
			taken.end = later(end, taken.end)
		}
	}
	l.leases = append(l.leases, taken)
}

// give releases n units of the identity, those that expire first.
func (l *leaseModel) give(t, n *big.Int) {
	l.leases, _ = l.live(t)
	l.last = l.at(t)
	for n.Sign() > 0 {
		first := l.first(l.identity)
		if first == nil {
			return
		}
		out := smaller(n, first.units)
		first.units, n = sub(first.units, out), sub(n, out)
	}
}

// first returns the lease of the identity that expires first and has units.
func (l *leaseModel) first(identity uint64) (first *leased) {
	for i := range l.leases {
		x := &l.leases[i]
		if x.identity != identity || x.units.Sign() == 0 {
			continue
		}
		if first == nil || first.end == nil && x.end != nil || x.end != nil && x.end.Cmp(first.end) < 0 {
			first = x
		}
	}
	return first
}

func same(a, b *big.Int) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Cmp(b) == 0
}

// later returns the later of two ends.
func later(a, b *big.Int) *big.Int {
	if a == nil || b == nil {
		return nil
	}
	return larger(a, b)
}
