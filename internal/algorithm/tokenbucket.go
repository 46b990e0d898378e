package algorithm

import "math"

// TokenBucket is the generic cell rate algorithm. Its state is one instant,
// the theoretical arrival time (TAT): the bucket is full when TAT is not ahead
// of now, and each unit taken moves TAT ahead by T = period/rate.
//
// T is a fraction of nanoseconds, so an instant is counted in ticks of 1/den
// ns, where den is the denominator of T in lowest terms: a unit is then a whole
// number of ticks, and no rate ever drifts. State: A and B are the high and low
// half of TAT in ticks, C is den. The state carries its den so that an instant
// stays the same instant when the rate changes.
type TokenBucket struct {
	den   int64 // ticks in a nanosecond
	unit  int64 // ticks that one unit takes
	burst int64

	// Where what the burst takes fits a word: the burst, otherwise 0, and what one
	// unit and the burst take.
	wordBurst uint64
	one, most mixed
}

// NewTokenBucket makes a bucket of burst units, refilled by rate units each
// period. All are within the bounds of package weir.
func NewTokenBucket(rate, period, burst int64) *TokenBucket {
	common := gcd(rate, period)
	b := &TokenBucket{den: rate / common, unit: period / common, burst: burst}
	most, fits := mixedOf(mul(b.burst, b.unit), b.den)
	if fits {
		b.wordBurst, b.one, b.most = uint64(b.burst), mixed{b.unit / b.den, b.unit % b.den}, most
	}
	return b
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Wait solves TAT + nT - (now + wait) <= burst T.
func (b *TokenBucket) Wait(s State, now, n int64) int64 {
	ahead := b.tat(s, now).sub(b.ticks(now))
	return ahead.add(mul(n, b.unit)).sub(mul(b.burst, b.unit)).ceilDiv(b.den)
}

// Take moves TAT ahead by nT, but to no more than 2^53 units of debt below an
// empty bucket.
func (b *TokenBucket) Take(s State, now, n int64) State {
	tat := b.tat(s, now)
	return b.state(minInt128(tat.add(mul(n, b.unit)), maxInt128(tat, b.mostDebt(now))))
}

// mostDebt is where TAT saturates.
func (b *TokenBucket) mostDebt(now int64) int128 {
	return b.ticks(now).add(mul(b.burst+maxUnits, b.unit))
}

// AddsUp holds up to the most debt: whoever is let go leaves TAT ahead, so each
// moves it by no more and no less than its units.
func (b *TokenBucket) AddsUp(s State, now, n int64) bool {
	return !b.tat(s, now).add(mul(n, b.unit)).sub(b.mostDebt(now)).positive()
}

// Give moves TAT back by nT, but not behind now.
func (b *TokenBucket) Give(s State, now, n int64) State {
	return b.state(maxInt128(b.tat(s, now).sub(mul(n, b.unit)), b.ticks(now)))
}

// Room is the whole tokens left: burst - (TAT - now)/T.
func (b *TokenBucket) Room(s State, now int64) int64 {
	ahead := b.tat(s, now).sub(b.ticks(now))
	return mul(b.burst, b.unit).sub(ahead).floorDiv(b.unit)
}

// Fresh is a TAT before all time.
func (b *TokenBucket) Fresh() State { return State{A: math.MinInt64, C: b.den} }

// Capacity is the burst.
func (b *TokenBucket) Capacity() int64 { return b.burst }

// Solitary is false.
func (b *TokenBucket) Solitary() bool { return false }

// Planned is true: TAT says by itself what was spent ahead.
func (b *TokenBucket) Planned() bool { return true }

// Book is Take: a booking is a debt.
func (b *TokenBucket) Book(s State, now, n int64) State { return b.Take(s, now, n) }

// Unbook puts TAT back.
func (b *TokenBucket) Unbook(before, _ State, _ int64) State { return before }

func (b *TokenBucket) ticks(t int64) int128 { return mul(t, b.den) }

func (b *TokenBucket) state(tat int128) State {
	return State{A: tat.hi, B: int64(tat.lo), C: b.den}
}

// tat is TAT in ticks, but not behind now. A state of another rate is read as
// the instant it is, rounded up to a tick.
func (b *TokenBucket) tat(s State, now int64) int128 {
	stored := int128{s.A, uint64(s.B)}
	if s.C != b.den && s.A != math.MinInt64 {
		stored = b.reticked(stored, s.C, now)
	}
	return maxInt128(stored, b.ticks(now))
}

// reticked is tat, in ticks of 1/den ns, in ticks of this bucket: only what is
// ahead of now matters; it saturates at 292 years.
func (b *TokenBucket) reticked(tat int128, den, now int64) int128 {
	ahead := tat.sub(mul(now, den))
	if !ahead.positive() {
		return b.ticks(now)
	}
	whole, rest := ahead.divMod(den)
	part := mul(rest, b.den).ceilDiv(den)
	return b.ticks(now).add(mul(whole, b.den)).add(int128{lo: uint64(part)})
}

// rescaled is the state under b that keeps the units used under old: TAT' = now
// + (TAT - now) T'/T, rounded up to a tick.
func (b *TokenBucket) rescaled(old *TokenBucket, s State, now int64) State {
	ahead := old.tat(s, now).sub(old.ticks(now))
	units, rest := ahead.divMod(old.unit)
	part := mul(rest, b.unit).ceilDiv(old.unit)
	return b.state(b.ticks(now).add(mul(units, b.unit)).add(int128{lo: uint64(part)}))
}

// AppendState appends TAT and its ticks.
func (b *TokenBucket) AppendState(into []int64, s State) []int64 { return appendNumbers(into, s, 3) }

// RestoreState refuses an instant without ticks.
func (b *TokenBucket) RestoreState(numbers []int64) (s State, ok bool) {
	s, ok = restoreNumbers(numbers, 3)
	return s, ok && s.C >= 1
}

// Carry keeps the units used under the limit before.
func (b *TokenBucket) Carry(before Algorithm, s State, now int64) State {
	return b.rescaled(before.(interface{ bucket() *TokenBucket }).bucket(), s, now)
}

func (b *TokenBucket) bucket() *TokenBucket { return b }
