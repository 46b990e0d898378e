package algorithm_test

import (
	"math"
	"math/big"

	"github.com/weirflow/weir/internal/algorithm"
)

// The slow model: every limit as the bare rule of its definition in integers of any size. It finds every field of an
// answer by evaluating the rule, and shares no formula with the package.

// definition is one limit for one key. Instants and costs have any size; costs are at least 1.
type definition interface {
	// admits is the rule of the definition.
	admits(t, n *big.Int) bool
	// take writes a cost that was admitted or recorded.
	take(t, n *big.Int)
	// give takes back n unused units.
	give(t, n *big.Int)
}

// model adds the verbs of all limits to a definition.
type model struct {
	definition
	limit       *big.Int // the capacity
	countDenied bool
	// delay returns the time from t to the release of a cost taken at t; nil for limits without delays.
	delay func(t, n *big.Int) *big.Int
}

// viewer is a definition that reads its state in another way before it writes it so.
type viewer interface {
	view(t *big.Int) (undo func())
}

func (m *model) view(t *big.Int) (undo func()) {
	if v, ok := m.definition.(viewer); ok {
		return v.view(t)
	}
	return func() {}
}

func (m *model) allow(now, n int64) algorithm.Answer {
	t, cost := big.NewInt(now), big.NewInt(n)
	undo := m.view(t)
	if n == 0 || cost.Cmp(m.limit) > 0 {
		defer undo()
	}
	admitted := m.fits(t, cost)
	var delay int64
	if admitted && n > 0 && m.delay != nil {
		delay = saturate(m.delay(t, cost))
	}
	if n > 0 && (admitted || m.countDenied && cost.Cmp(m.limit) <= 0) {
		m.take(t, cost)
		if b, ok := m.definition.(*bucketModel); ok && delay > 0 {
			b.promise(add(t, big.NewInt(delay)))
		}
	}
	a := m.describe(t, cost, admitted)
	a.Delay = delay
	return a
}

func (m *model) peek(now, n int64) algorithm.Answer {
	t, cost := big.NewInt(now), big.NewInt(n)
	defer m.view(t)()
	admitted := m.fits(t, cost)
	a := m.describe(t, cost, admitted)
	if admitted && n > 0 && m.delay != nil {
		a.Delay = saturate(m.delay(t, cost))
	}
	return a
}

func (m *model) record(now, n int64) algorithm.Answer {
	t, cost := big.NewInt(now), big.NewInt(n)
	undo := m.view(t)
	if n == 0 {
		defer undo()
	}
	fitted := m.fits(t, cost)
	switch {
	case n > 0:
		m.take(t, cost)
	case n < 0:
		m.give(t, new(big.Int).Neg(cost))
	}
	return m.describe(t, cost, fitted)
}

// reserve takes the cost at the earliest instant, if that is at most most away.
func (m *model) reserve(now, n, most int64) (delay int64, ok bool) {
	t, cost := big.NewInt(now), big.NewInt(n)
	undo := m.view(t)
	delay = m.wait(t, cost)
	if delay == algorithm.Never || delay > most {
		undo()
		return 0, false
	}
	b, books := m.definition.(booker)
	switch {
	case n == 0:
		undo()
	case !books:
		m.take(t, cost)
	case !b.bookable(t, big.NewInt(delay), cost):
		return 0, false
	default:
		b.book(t, big.NewInt(delay), cost)
	}
	return delay, true
}

// fits is the rule with what all limits share: cost 0 always fits, and a cost above the capacity never fits.
func (m *model) fits(t, n *big.Int) bool {
	return n.Sign() <= 0 || n.Cmp(m.limit) <= 0 && m.admits(t, n)
}

// describe finds the fields by their definitions. An admitted operation has no wait.
func (m *model) describe(t, n *big.Int, admitted bool) algorithm.Answer {
	a := algorithm.Answer{
		Allowed:    admitted,
		Limit:      m.limit.Int64(),
		Remaining:  m.remaining(t),
		ResetAfter: m.wait(t, m.limit),
		LimitReset: m.wait(t, m.limit),
	}
	if !admitted {
		a.RetryAfter = max(m.wait(t, n), 1)
		if l, ok := m.definition.(*logModel); ok && a.RetryAfter < algorithm.Never {
			a.ByGap = l.inGap(l.at(add(t, big.NewInt(a.RetryAfter-1))))
		}
	}
	return a
}

// remaining returns the largest cost that fits at t.
func (m *model) remaining(t *big.Int) int64 {
	low, high := int64(0), m.limit.Int64()
	for low < high {
		mid := high - (high-low)/2
		if m.fits(t, big.NewInt(mid)) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// wait returns the smallest w >= 0 such that n fits at t + w. It saturates at 2^63-1, and returns Never for a cost
// above the capacity.
func (m *model) wait(t, n *big.Int) int64 {
	after := func(w int64) *big.Int { return new(big.Int).Add(t, big.NewInt(w)) }
	if !m.fits(after(math.MaxInt64), n) {
		return algorithm.Never
	}
	low, high := int64(0), int64(math.MaxInt64)
	for low < high {
		mid := low + (high-low)/2
		if m.fits(after(mid), n) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

func saturate(d *big.Int) int64 {
	if !d.IsInt64() {
		return math.MaxInt64
	}
	return d.Int64()
}

// Arithmetic of any size, with short names.
func add(a, b *big.Int) *big.Int     { return new(big.Int).Add(a, b) }
func sub(a, b *big.Int) *big.Int     { return new(big.Int).Sub(a, b) }
func times(a, b *big.Int) *big.Int   { return new(big.Int).Mul(a, b) }
func atMost(a, b *big.Int) bool      { return a.Cmp(b) <= 0 }
func smaller(a, b *big.Int) *big.Int { return pick(a.Cmp(b) <= 0, a, b) }
func larger(a, b *big.Int) *big.Int  { return pick(a.Cmp(b) >= 0, a, b) }

func pick(first bool, a, b *big.Int) *big.Int {
	if first {
		return a
	}
	return b
}

// floorQuotient returns a / b for b > 0, rounded towards minus infinity.
func floorQuotient(a, b *big.Int) *big.Int { return new(big.Int).Div(a, b) }

// mostUnits is where counts and debts saturate.
var mostUnits = new(big.Int).Lsh(big.NewInt(1), 53)
