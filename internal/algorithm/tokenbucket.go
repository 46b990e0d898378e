package algorithm

import "math"

// TokenBucket is the generic cell rate algorithm. Its state is one instant, the theoretical arrival time (TAT). The
// bucket is full when TAT is not ahead of now, and each unit taken moves TAT ahead by T = period/rate.
//
// T is a fraction of nanoseconds, so instants are counted in ticks of 1/den ns, where den is the denominator of T in
// lowest terms. A unit is then a whole number of ticks, and no rate drifts. State: A and B are the high and low half
// of TAT in ticks, and C is den. The state contains den so that an instant stays the same when the rate changes.
type TokenBucket struct {
	den   int64 // ticks in a nanosecond
	unit  int64 // ticks that one unit takes
	burst int64

	// If the time of the burst fits in a word: the burst, and the times of one unit and of the burst. Otherwise 0.
	wordBurst      uint64
	one, burstTime mixed
}

// NewTokenBucket returns a bucket of burst units that refills at rate units per period. The values must be within the
// bounds of package weir.
func NewTokenBucket(rate, period, burst int64) *TokenBucket {
	common := gcd(rate, period)
	b := &TokenBucket{den: rate / common, unit: period / common, burst: burst}
	burstTime, fits := mixedOf(mul(b.burst, b.unit), b.den)
	if fits {
		b.wordBurst, b.one, b.burstTime = uint64(b.burst), mixed{b.unit / b.den, b.unit % b.den}, burstTime
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

// Take moves TAT ahead by nT, up to a debt of 2^53 units below an empty bucket.
func (b *TokenBucket) Take(s State, now, n int64) State {
	tat := b.tat(s, now)
	return b.state(minInt128(tat.add(mul(n, b.unit)), maxInt128(tat, b.mostDebt(now))))
}

// mostDebt returns the value at which TAT saturates.
func (b *TokenBucket) mostDebt(now int64) int128 {
	return b.ticks(now).add(mul(b.burst+maxUnits, b.unit))
}

// AddsUp returns true up to the largest debt: a released caller leaves TAT ahead, so each take moves it by exactly
// its units.
func (b *TokenBucket) AddsUp(s State, now, n int64) bool {
	return !b.tat(s, now).add(mul(n, b.unit)).sub(b.mostDebt(now)).positive()
}

// Give moves TAT back by nT, but not behind now.
func (b *TokenBucket) Give(s State, now, n int64) State {
	return b.state(maxInt128(b.tat(s, now).sub(mul(n, b.unit)), b.ticks(now)))
}

// Room returns the whole tokens left: burst - (TAT - now)/T.
func (b *TokenBucket) Room(s State, now int64) int64 {
	ahead := b.tat(s, now).sub(b.ticks(now))
	return mul(b.burst, b.unit).sub(ahead).floorDiv(b.unit)
}

// Fresh returns a TAT before all time.
func (b *TokenBucket) Fresh() State { return State{A: math.MinInt64, C: b.den} }

// Capacity returns the burst.
func (b *TokenBucket) Capacity() int64 { return b.burst }

func (b *TokenBucket) Solitary() bool { return false }

// Planned returns true: TAT records what was spent in advance.
func (b *TokenBucket) Planned() bool { return true }

// Book works like Take: a booking is a debt.
func (b *TokenBucket) Book(s State, now, n int64) State { return b.Take(s, now, n) }

// Unbook restores TAT.
func (b *TokenBucket) Unbook(before, _ State, _ int64) State { return before }

func (b *TokenBucket) ticks(t int64) int128 { return mul(t, b.den) }

func (b *TokenBucket) state(tat int128) State {
	return State{A: tat.hi, B: int64(tat.lo), C: b.den}
}

// tat returns TAT in ticks, but not behind now. It converts a state of another rate to the same instant, rounded up
// to a tick.
func (b *TokenBucket) tat(s State, now int64) int128 {
	stored := int128{s.A, uint64(s.B)}
	if s.C != b.den && s.A != math.MinInt64 {
		stored = b.reticked(stored, s.C, now)
	}
	return maxInt128(stored, b.ticks(now))
}

// reticked converts tat from ticks of 1/den ns to ticks of this bucket. Only the part ahead of now matters; it
// saturates at 292 years.
func (b *TokenBucket) reticked(tat int128, den, now int64) int128 {
	ahead := tat.sub(mul(now, den))
	if !ahead.positive() {
		return b.ticks(now)
	}
	whole, rest := ahead.divMod(den)
	part := mul(rest, b.den).ceilDiv(den)
	return b.ticks(now).add(mul(whole, b.den)).add(int128{lo: uint64(part)})
}

// rescaled converts a state of old and keeps the units used: TAT' = now + (TAT - now) T'/T, rounded up to a tick.
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

// Carry keeps the units used under the earlier limit.
func (b *TokenBucket) Carry(before Algorithm, s State, now int64) State {
	return b.rescaled(before.(interface{ bucket() *TokenBucket }).bucket(), s, now)
}

func (b *TokenBucket) bucket() *TokenBucket { return b }
