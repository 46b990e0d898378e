package algorithm_test

import (
	"math/big"
	"slices"
)

// booker is a definition with bookings: a cost booked at t is released at t + delay.
type booker interface {
	book(t, delay, n *big.Int)
	// bookable reports whether n more units may be booked with this delay.
	bookable(t, delay, n *big.Int) bool
}

// gateModel is section 4.8: the instants of all units up to 2^53 or 3 times the limit, including later ones. Those that have passed are kept
// as long as they are not many, so that a booking can be undone.
type gateModel struct {
	limit, period *big.Int
	entries       []logged // in order of instants
}

func newGateModel(limit, period int64) *model {
	g := &gateModel{limit: big.NewInt(limit), period: big.NewInt(period)}
	return &model{definition: g, limit: g.limit}
}

// newest returns the newest instant, or t if none is later.
func (g *gateModel) newest(t *big.Int) *big.Int {
	for _, x := range g.entries {
		t = larger(t, x.at)
	}
	return t
}

// within returns the units in (from, to].
func (g *gateModel) within(from, to *big.Int) *big.Int {
	units := new(big.Int)
	for _, x := range g.entries {
		if x.at.Cmp(from) > 0 && x.at.Cmp(to) <= 0 {
			units = add(units, x.units)
		}
	}
	return units
}

func (g *gateModel) admits(t, n *big.Int) bool {
	return g.newest(t).Cmp(t) == 0 && atMost(add(g.within(sub(t, g.period), t), n), g.limit)
}

// take drops units that t has passed by a period.
func (g *gateModel) take(t, n *big.Int) {
	g.entries = slices.DeleteFunc(g.entries, func(x logged) bool { return atMost(add(x.at, g.period), t) })
	g.book(t, sub(g.newest(t), t), n)
}

func (g *gateModel) book(t, delay, n *big.Int) {
	if g.beyond(n) {
		g.entries = slices.DeleteFunc(g.entries, func(x logged) bool { return atMost(add(x.at, g.period), t) })
	}
	g.entries = upTo(larger(times(big.NewInt(3), g.limit), mostUnits), g.entries, logged{add(t, delay), n})
}

// beyond reports whether there would be more than three times the limit.
func (g *gateModel) beyond(n *big.Int) bool {
	return add(total(g.entries), n).Cmp(times(big.NewInt(3), g.limit)) > 0
}

func (g *gateModel) bookable(t, delay, n *big.Int) bool {
	if !add(t, delay).IsInt64() {
		return false // after the end of time
	}
	if g.newest(t).Cmp(t) == 0 {
		return true
	}
	return atMost(add(g.within(t, g.newest(t)), n), times(big.NewInt(2), g.limit))
}

// give removes the oldest n units that still count at the newest instant.
func (g *gateModel) give(t, n *big.Int) {
	e := g.newest(t)
	count := slices.IndexFunc(g.entries, func(x logged) bool { return add(x.at, g.period).Cmp(e) > 0 })
	if count < 0 {
		return
	}
	gone := slices.Clone(g.entries[:count])
	g.entries = append(gone, oldestOut(g.entries[count:], n)...)
}

// cycleModel is section 4.9, in terms of resilience4j's permissions.
type cycleModel struct {
	limit, period, origin *big.Int
	cycle                 *big.Int // number of the stored cycle; nil: fresh
	permissions           *big.Int
}

func newCycleModel(limit, period, origin int64) *model {
	c := &cycleModel{limit: big.NewInt(limit), period: big.NewInt(period), origin: big.NewInt(origin)}
	return &model{definition: c, limit: c.limit}
}

// at returns the cycle of t, or the stored one if that is later, and its permissions.
func (c *cycleModel) at(t *big.Int) (cycle, permissions *big.Int) {
	cycle = floorQuotient(sub(t, c.origin), c.period)
	if c.cycle == nil {
		return cycle, c.limit
	}
	cycle = larger(cycle, c.cycle)
	came := times(sub(cycle, c.cycle), c.limit)
	return cycle, smaller(c.limit, add(c.permissions, came))
}

func (c *cycleModel) admits(t, n *big.Int) bool {
	_, permissions := c.at(t)
	return atMost(n, permissions)
}

// take limits the debt to 2^53 units.
func (c *cycleModel) take(t, n *big.Int) {
	cycle, permissions := c.at(t)
	deepest := smaller(permissions, new(big.Int).Neg(mostUnits))
	c.cycle, c.permissions = cycle, larger(sub(permissions, n), deepest)
}

func (c *cycleModel) book(t, _, n *big.Int) { c.take(t, n) }

func (c *cycleModel) bookable(t, _, n *big.Int) bool {
	_, permissions := c.at(t)
	return atMost(sub(n, permissions), mostUnits)
}

func (c *cycleModel) give(t, n *big.Int) {
	cycle, permissions := c.at(t)
	c.cycle, c.permissions = cycle, smaller(add(permissions, n), c.limit)
}
