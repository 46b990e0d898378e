package wire

import (
	"math"
	"math/big"
	"math/bits"
	"time"

	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/stored"
)

// state returns the state of the part from the stored numbers. ok is false if they are not a state.
func (p *Part) state() (s enginekit.State, ok bool) { return p.stateIn(new([6]int64)) }

// stateIn is state with space to work in.
func (p *Part) stateIn(space *[6]int64) (s enginekit.State, ok bool) {
	l, n := p.Limit, &p.Stored
	if math.IsInf(n[0], -1) {
		return l.Functions.Fresh(), true
	}
	numbers := space[:3]
	switch {
	case l.Kind <= stored.KindLeaky:
		numbers = space[:]
		numbers[2], numbers[3] = int64(n[2]), int64(n[3])
		numbers[0], numbers[1] = instant(int64(n[0]), int64(n[1]), numbers[2])
		numbers[4], numbers[5] = orNever(n[4]), orNever(n[5])
		if numbers[4] > math.MinInt64 && n[4] != math.Floor(n[4]) { // half a us after a booked instant
			numbers[4], numbers[5] = math.MinInt64, numbers[4]
		}
	case l.Kind == stored.KindQuota:
		numbers = numbers[:2]
		numbers[0], numbers[1] = stored.FloorDiv(int64(n[0]), int64(time.Second/stored.Tick)), int64(n[1])
	case !l.Weighs: // a fixed window, or a cycle
		numbers = numbers[:2]
		numbers[0], numbers[1] = (int64(n[0])-l.Origin)/l.Period, int64(n[1])
	default:
		numbers[0], numbers[1], numbers[2] = int64(n[0])/l.Period, int64(n[1]), int64(n[2])
	}
	return l.Functions.FromNumbers(numbers)
}

// after returns the TAT that the take of a leaky bucket left.
func (p *Part) after(now int64) stored.Span {
	s, ok := p.state()
	if !ok {
		return stored.Span{}
	}
	return p.tatOf(p.Limit.Functions.Take(s, now, p.Cost, 0))
}

// tatOf returns the TAT of the state of a bucket.
func (p *Part) tatOf(s enginekit.State) stored.Span {
	n := p.Limit.Functions.AppendNumbers(nil, s)
	tat := new(big.Int).Lsh(big.NewInt(n[0]), 64)
	whole, rest := tat.Or(tat, new(big.Int).SetUint64(uint64(n[1]))).DivMod(tat, big.NewInt(n[2]), new(big.Int))
	return stored.Span{Whole: float64(whole.Int64()), Rest: float64(rest.Int64())}
}

// orNever returns an instant, or the one before all time.
func orNever(n float64) int64 {
	if math.IsInf(n, -1) {
		return math.MinInt64
	}
	return int64(n)
}

// instant returns whole + rest/den in 1/den us, as the halves of 128 bits.
func instant(whole, rest, den int64) (high, low int64) {
	hi, lo := bits.Mul64(uint64(whole), uint64(den))
	if whole < 0 {
		hi -= uint64(den)
	}
	lo, carry := bits.Add64(lo, uint64(rest), 0)
	return int64(hi + carry), int64(lo)
}
