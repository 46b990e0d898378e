package algorithm_test

import (
	"math/big"
	"slices"
)

// windowModel is sections 4.5 and 4.6, which differ in the weight of the previous window.
type windowModel struct {
	limit, period   *big.Int
	slides          bool
	window          *big.Int // number of the stored window; nil: fresh
	before, current *big.Int
}

func newWindowModel(limit, period int64, slides bool) *model {
	w := &windowModel{limit: big.NewInt(limit), period: big.NewInt(period), slides: slides, before: new(big.Int), current: new(big.Int)}
	return &model{definition: w, limit: w.limit}
}

// at returns the stored state as of t: the window, its elapsed part and the counts.
func (w *windowModel) at(t *big.Int) (window, elapsed, before, current *big.Int) {
	e := t
	if w.window != nil {
		e = larger(t, times(w.window, w.period))
	}
	window = floorQuotient(e, w.period)
	elapsed = sub(e, times(window, w.period))
	before, current = new(big.Int), new(big.Int)
	if w.window != nil {
		switch sub(window, w.window).String() {
		case "0":
			before, current = w.before, w.current
		case "1":
			before = w.current
		}
	}
	if !w.slides {
		before = new(big.Int)
	}
	return window, elapsed, before, current
}

func (w *windowModel) admits(t, n *big.Int) bool {
	_, elapsed, before, current := w.at(t)
	weighed := times(before, sub(w.period, elapsed))
	return atMost(add(weighed, times(add(current, n), w.period)), times(w.limit, w.period))
}

func (w *windowModel) take(t, n *big.Int) {
	window, _, before, current := w.at(t)
	w.window, w.before, w.current = window, before, smaller(add(current, n), mostUnits)
}

func (w *windowModel) give(t, n *big.Int) {
	window, _, before, current := w.at(t)
	w.window, w.before, w.current = window, before, larger(sub(current, n), new(big.Int))
}

// logModel is section 4.7: all logged units up to 2^53, or with refusals the newest limit units. Like a window, it
// clamps times to the instant of the last write, including writes that gave units back.
type logModel struct {
	limit, period, gap *big.Int
	entries            []logged
	last               *big.Int // nil: fresh
	denied             bool
}

type logged struct{ at, units *big.Int }

func newLogModel(limit, period, gap int64, countDenied bool) *model {
	l := &logModel{limit: big.NewInt(limit), period: big.NewInt(period), gap: big.NewInt(gap), denied: countDenied}
	return &model{definition: l, limit: l.limit, countDenied: countDenied}
}

func (l *logModel) at(t *big.Int) *big.Int {
	if l.last == nil {
		return t
	}
	return larger(t, l.last)
}

// counts reports whether an entry is in the window (e - P, e].
func (l *logModel) counts(x logged, e *big.Int) bool { return add(x.at, l.period).Cmp(e) > 0 }

func (l *logModel) admits(t, n *big.Int) bool {
	e, units := l.at(t), n
	for _, x := range l.entries {
		if l.counts(x, e) {
			units = add(units, x.units)
		}
	}
	return !l.inGap(e) && atMost(units, l.limit)
}

func (l *logModel) inGap(e *big.Int) bool {
	return len(l.entries) > 0 && e.Cmp(add(l.entries[len(l.entries)-1].at, l.gap)) < 0
}

func (l *logModel) take(t, n *big.Int) {
	l.last = l.at(t)
	l.entries = slices.DeleteFunc(l.entries, func(x logged) bool { return !l.counts(x, l.last) })
	if l.denied {
		l.entries = append(l.entries, logged{l.last, n})
		l.entries = oldestOut(l.entries, sub(total(l.entries), l.limit))
		return
	}
	l.entries = upTo(mostUnits, l.entries, logged{l.last, n})
}

func total(entries []logged) *big.Int {
	units := new(big.Int)
	for _, x := range entries {
		units = add(units, x.units)
	}
	return units
}

// upTo returns the entries with as much of another as most units permit.
func upTo(most *big.Int, entries []logged, x logged) []logged {
	x.units = smaller(x.units, sub(most, total(entries)))
	if x.units.Sign() <= 0 {
		return entries
	}
	return append(entries, x)
}

// give removes the oldest n units that still count.
func (l *logModel) give(t, n *big.Int) {
	if len(l.entries) == 0 {
		return
	}
	l.last = l.at(t)
	l.entries = slices.DeleteFunc(l.entries, func(x logged) bool { return !l.counts(x, l.last) })
	l.entries = oldestOut(l.entries, n)
}

// oldestOut returns the entries without their n oldest units.
func oldestOut(entries []logged, n *big.Int) []logged {
	for len(entries) > 0 && n.Sign() > 0 {
		out := smaller(n, entries[0].units)
		n = sub(n, out)
		rest := sub(entries[0].units, out)
		if rest.Sign() > 0 {
			return append([]logged{{entries[0].at, rest}}, entries[1:]...)
		}
		entries = entries[1:]
	}
	return entries
}
