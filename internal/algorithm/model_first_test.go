package algorithm_test

import "math/big"

// firstModel is section 4.12: a count, and the instant at which its window began. A key without units has neither.
type firstModel struct {
	limit, period *big.Int
	start         *big.Int // nil: fresh
	count         *big.Int
}

func newFirstModel(limit, period int64) *model {
	f := &firstModel{limit: big.NewInt(limit), period: big.NewInt(period)}
	return &model{definition: f, limit: f.limit}
}

// open reports whether the window is open at t, which is clamped to its start.
func (f *firstModel) open(t *big.Int) bool {
	return f.start != nil && larger(t, f.start).Cmp(add(f.start, f.period)) < 0
}

func (f *firstModel) used(t *big.Int) *big.Int {
	if f.open(t) {
		return f.count
	}
	return new(big.Int)
}

func (f *firstModel) admits(t, n *big.Int) bool { return atMost(add(f.used(t), n), f.limit) }

func (f *firstModel) take(t, n *big.Int) {
	if !f.open(t) {
		f.start, f.count = t, new(big.Int)
	}
	f.count = smaller(add(f.count, n), mostUnits)
}

func (f *firstModel) give(t, n *big.Int) {
	if !f.open(t) {
		return
	}
	if f.count = sub(f.count, n); f.count.Sign() <= 0 {
		f.start, f.count = nil, nil
	}
}

func (f *firstModel) undo(t, taken, n *big.Int) {
	if f.open(t) && taken.Cmp(f.start) >= 0 && taken.Cmp(add(f.start, f.period)) < 0 {
		f.give(t, n)
	}
}
