package algorithm_test

import (
	"math"
	"math/big"
)

// bucketModel is section 4.2, and section 7 for a state that another limit wrote: TAT is a rational instant in N-ths of
// a nanosecond, so that T = P/N is P of them. N and P are those of the limit that wrote it.
type bucketModel struct {
	rate, period, burst *big.Int
	tat                 *big.Int // nil: fresh
	wrate, wperiod      *big.Int // of the limit that wrote tat
	promised            *big.Int // the newest promised instant; nil if there is none
	queues              bool     // a promised instant holds nothing back
	noDelay             int64
}

func newBucketModel(rate, period, burst int64) *model {
	b := &bucketModel{}
	m := &model{definition: b}
	m.change(rate, period, burst, 0)
	return m
}

// newQueueModel is section 4.3 by its last sentence, with its delay.
func newQueueModel(rate, period, queue, noDelay int64) *model {
	b := &bucketModel{queues: true}
	m := &model{definition: b, delay: b.delay}
	m.change(rate, period, queue+1, noDelay)
	return m
}

// change gives the bucket another limit and leaves its state.
func (m *model) change(rate, period, burst, noDelay int64) {
	b := m.definition.(*bucketModel)
	b.rate, b.period, b.burst, b.noDelay = big.NewInt(rate), big.NewInt(period), big.NewInt(burst), noDelay
	m.limit = b.burst
}

// delay returns the time to the release of a cost that would be taken at t.
func (b *bucketModel) delay(t, n *big.Int) *big.Int {
	ahead := *b
	ahead.convert(t)
	return b.held(add(ahead.from(t), times(sub(n, big.NewInt(1)), b.period)), t)
}

// held returns the time from t to the release of a slot, rounded up to a nanosecond.
func (b *bucketModel) held(slot, t *big.Int) *big.Int {
	held := sub(sub(slot, times(t, b.rate)), times(big.NewInt(b.noDelay), b.period))
	up := sub(b.rate, big.NewInt(1))
	return floorQuotient(add(larger(held, new(big.Int)), up), b.rate)
}

// sign compares the time of a unit with that under the limit that wrote tat.
func (b *bucketModel) sign() int {
	if b.tat == nil {
		return 0
	}
	return times(b.period, b.wrate).Cmp(times(b.wperiod, b.rate))
}

// convert keeps the units used: TAT' = q + (TAT - q) T'/T, rounded up to a tick, which is N-ths by their greatest
// common divisor with P. A TAT up to q stays.
func (b *bucketModel) convert(t *big.Int) {
	if b.tat != nil && b.sign() == 0 { // the same rate, perhaps in other numbers
		b.tat = floorQuotient(times(b.tat, b.rate), b.wrate)
	} else if b.tat != nil {
		q := b.later(t)
		tick := new(big.Int).GCD(nil, nil, b.rate, b.period)
		rounded := func(ahead, by *big.Int) *big.Int {
			up := sub(times(by, tick), big.NewInt(1))
			return times(floorQuotient(add(ahead, up), times(by, tick)), tick)
		}
		ahead := sub(b.tat, times(q, b.wrate))
		if ahead.Sign() > 0 {
			b.tat = add(times(q, b.rate), rounded(times(ahead, b.period), b.wperiod))
		} else {
			b.tat = rounded(times(b.tat, b.rate), b.wrate)
		}
	}
	b.wrate, b.wperiod = b.rate, b.period
}

// later returns the later of t and the newest promised instant.
func (b *bucketModel) later(t *big.Int) *big.Int {
	if b.promised == nil {
		return t
	}
	return larger(t, b.promised)
}

// view converts the state to a faster limit, and returns how to undo that.
func (b *bucketModel) view(t *big.Int) (undo func()) {
	before := *b
	if b.sign() < 0 {
		b.convert(t)
	}
	return func() { *b = before }
}

// from returns max(TAT, t) of a converted state.
func (b *bucketModel) from(t *big.Int) *big.Int {
	now := times(t, b.rate)
	if b.tat == nil {
		return now
	}
	return larger(b.tat, now)
}

// admits compares the units used at t with the room: (TAT - q)/T + n <= B.
func (b *bucketModel) admits(t, n *big.Int) bool {
	if !b.queues && b.promised != nil && t.Cmp(b.promised) < 0 {
		return false
	}
	if b.tat == nil {
		return true
	}
	if b.sign() != 0 && b.later(t).Cmp(t) > 0 {
		converted := *b
		converted.convert(t)
		return converted.admits(t, n)
	}
	ahead := larger(sub(b.tat, times(t, b.wrate)), new(big.Int))
	return atMost(add(ahead, times(n, b.wperiod)), times(b.burst, b.wperiod))
}

// take limits the debt below an empty bucket to 2^53 units.
func (b *bucketModel) take(t, n *big.Int) {
	b.convert(t)
	from := b.from(t)
	deepest := add(times(t, b.rate), times(add(b.burst, mostUnits), b.period))
	b.tat = smaller(add(from, times(n, b.period)), larger(from, deepest))
}

func (b *bucketModel) give(t, n *big.Int) {
	floor := t
	if !b.queues {
		floor = b.later(t)
	}
	b.convert(t)
	b.tat = larger(sub(b.from(t), times(n, b.period)), times(floor, b.rate))
}

// book promises an instant, before which nothing else is admitted. Until then the units come back at the rate of a faster
// limit.
func (b *bucketModel) book(t, delay, n *big.Int) {
	promised := smaller(add(t, delay), big.NewInt(math.MaxInt64))
	switch {
	case b.queues: // promised is the release of the last unit, of a debt that may be saturated
		b.take(t, n)
		delay = smaller(b.held(sub(b.tat, b.period), t), big.NewInt(math.MaxInt64))
		promised = add(t, delay)
	case b.sign() > 0:
		b.take(promised, n)
	default:
		b.take(t, n)
	}
	if delay.Sign() > 0 {
		b.promise(promised)
	}
}

func (b *bucketModel) bookable(_, _, _ *big.Int) bool { return true }

func (b *bucketModel) promise(promised *big.Int) {
	promised = smaller(promised, big.NewInt(math.MaxInt64))
	if b.promised == nil || b.promised.Cmp(promised) < 0 {
		b.promised = promised
	}
}
