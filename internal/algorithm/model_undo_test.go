package algorithm_test

import (
	"math/big"

	"github.com/weirflow/weir/internal/algorithm"
)

// undoer is a definition that tells the units of a take from others by its instant.
type undoer interface {
	undo(t, taken, n *big.Int)
}

// undo gives back n units of a take at an instant. A bucket and slots take them back as if nobody knew when they were
// taken.
func (m *model) undo(now, taken, n int64) algorithm.Answer {
	t, cost := big.NewInt(now), big.NewInt(n)
	view := m.view(t)
	switch d, ok := m.definition.(undoer); {
	case n == 0:
		defer view()
	case ok:
		d.undo(t, big.NewInt(taken), cost)
	default:
		m.give(t, cost)
	}
	return m.describe(t, cost, true)
}

func (w *windowModel) undo(t, taken, n *big.Int) {
	window, _, before, current := w.at(t)
	w.window, w.before, w.current = window, before, current
	switch of := floorQuotient(taken, w.period); {
	case of.Cmp(window) == 0:
		w.current = larger(sub(current, n), new(big.Int))
	case add(of, big.NewInt(1)).Cmp(window) == 0:
		w.before = larger(sub(before, n), new(big.Int))
	}
}

func (c *cycleModel) undo(t, taken, n *big.Int) {
	cycle, permissions := c.at(t)
	c.cycle, c.permissions = cycle, permissions
	if floorQuotient(sub(taken, c.origin), c.period).Cmp(cycle) == 0 && permissions.Sign() >= 0 {
		c.permissions = smaller(add(permissions, n), c.limit)
	}
}

func (l *logModel) undo(t, taken, n *big.Int) {
	if len(l.entries) > 0 {
		l.last = l.at(t)
		l.entries = without(l.entries, taken, n)
	}
}

func (g *gateModel) undo(_, taken, n *big.Int) { g.entries = without(g.entries, taken, n) }

// without returns the entries without n units of an instant.
func without(entries []logged, at, n *big.Int) (left []logged) {
	for _, x := range entries {
		if x.at.Cmp(at) == 0 {
			out := smaller(n, x.units)
			n, x.units = sub(n, out), sub(x.units, out)
		}
		if x.units.Sign() > 0 {
			left = append(left, x)
		}
	}
	return left
}
