package pace_test

import "math/big"

// fairModel is start-time fair queueing on fractions. The callers in flows that ask for the same keys are a line.
type fairModel map[string]*fairLine

type fairLine struct {
	virtual *big.Rat
	flows   map[string]*fairFlow
}

// fairFlow has the start of its first caller, and the end of its service so far.
type fairFlow struct{ start, finish *big.Rat }

// lineOf returns the text of the keys of a caller in a flow.
func lineOf(c *scheduled) (keys string) {
	for _, q := range c.requests {
		keys += q.Rule.String() + " " + q.Key + ","
	}
	return keys
}

// head returns the first waiting caller of the flow of c, or nil.
func head(c *scheduled, callers []*scheduled) *scheduled {
	for _, e := range callers {
		if e.waiting && e.flow == c.flow && lineOf(e) == lineOf(c) {
			return e
		}
	}
	return nil
}

// behind reports whether e is in the line of c, which is the first there.
func (m fairModel) behind(c, e *scheduled) bool {
	return c.flow != "" && e.flow != "" && lineOf(c) == lineOf(e)
}

// first reports whether c is the next caller of its line.
func (m fairModel) first(c *scheduled, callers []*scheduled) bool {
	if c.flow == "" {
		return true
	}
	var next *scheduled
	for _, e := range callers {
		if !e.waiting || !m.behind(c, e) || head(e, callers) != e {
			continue
		}
		if next == nil || m.flowOf(e).start.Cmp(m.flowOf(next).start) < 0 {
			next = e
		}
	}
	return next == c
}

func (m fairModel) flowOf(c *scheduled) *fairFlow { return m[lineOf(c)].flows[c.flow] }

// comes is called before c waits.
func (m fairModel) comes(c *scheduled, callers []*scheduled) {
	if c.flow == "" {
		return
	}
	l := m[lineOf(c)]
	if l == nil {
		l = &fairLine{new(big.Rat), map[string]*fairFlow{}}
		m[lineOf(c)] = l
	}
	f := l.flows[c.flow]
	if f == nil {
		f = &fairFlow{new(big.Rat), new(big.Rat)}
		l.flows[c.flow] = f
	}
	if head(c, callers) != nil {
		return
	}
	// Virtual time, rounded up to a multiple of 1/weight, or the end of the flow's service.
	units := new(big.Int).Mul(l.virtual.Num(), big.NewInt(c.weight))
	units.Add(units, new(big.Int).Sub(l.virtual.Denom(), big.NewInt(1)))
	f.start = new(big.Rat).SetFrac(units.Div(units, l.virtual.Denom()), big.NewInt(c.weight))
	if f.finish.Cmp(f.start) > 0 {
		f.start = f.finish
	}
}

// serves charges the flow of c, which goes.
func (m fairModel) serves(c *scheduled) {
	if c.flow == "" {
		return
	}
	cost := int64(0)
	for _, q := range c.requests {
		cost = max(cost, q.Cost)
	}
	f := m.flowOf(c)
	m[lineOf(c)].virtual = f.start
	f.finish = new(big.Rat).Add(f.start, big.NewRat(cost, c.weight))
	f.start = f.finish
}

// leaves forgets the line of c, which no longer waits, after its last caller.
func (m fairModel) leaves(c *scheduled, callers []*scheduled) {
	for _, e := range callers {
		if e.waiting && m.behind(c, e) {
			return
		}
	}
	delete(m, lineOf(c))
}
