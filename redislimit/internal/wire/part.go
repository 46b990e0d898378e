package wire

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"strings"
	"time"

	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/stored"
)

// append writes the parameters of a log or of slots.
func (p *Part) append(to []byte) []byte {
	l := p.Limit
	if l.Kind == stored.KindLog {
		return stored.Doubles(to, p.units(), float64(l.Capacity), float64(l.Period), float64(l.Gap), flag(l.Denied), flag(l.Gate))
	}
	return binary.LittleEndian.AppendUint64(stored.Doubles(to, p.units(), float64(l.Capacity), float64(l.Period)), p.Lease)
}

// appendBan writes the parameters of the ban that is the i-th part.
func (d *Decision) appendBan(to []byte, i int) []byte {
	p, before, behind := &d.Parts[i], byte(0), byte(0)
	for j := range d.Parts {
		switch q := &d.Parts[j]; {
		case q.Joins || q.Request != p.Request:
		case j < i:
			before++
		case j > i:
			behind++
		}
	}
	b := &p.Limit.Ban
	to = stored.Doubles(to, p.units(), float64(b.After), float64(b.Within), float64(b.Shortest), float64(b.Longest))
	return append(to, before, behind, byte(flag(p.Spared)))
}

// appendFixed appends the parameters of a limit with states of fixed size. The server's clock shows about now.
func (p *Part) appendFixed(to []float64, o Op, now int64) []float64 {
	l := p.Limit
	switch {
	case l.Kind == stored.KindQuota:
		b, n := l.Around(now), p.units()
		if p.Cost > l.Capacity && o != OpRecord { // which a double need not tell from the largest capacity
			n = math.Inf(1)
		}
		return append(to, n, float64(l.Capacity), float64(b[0]), float64(b[1]), float64(b[2]), float64(l.Period))
	case l.Kind == stored.KindFirst:
		return append(to, p.units(), float64(l.Capacity), float64(l.Period))
	case l.Kind == stored.KindWindow:
		return append(to, p.units(), float64(l.Capacity), float64(l.Period), flag(l.Weighs))
	case l.Kind != stored.KindCycle:
		return p.appendBucket(to, o)
	}
	to = append(to, p.units(), float64(l.Capacity), float64(l.Period), float64(l.Origin))
	if o == OpWithdraw {
		to = append(to, p.past.bookedTo[0], p.past.bookedTo[1], p.past.restored[0], p.past.restored[1])
	}
	return to
}

// appendBucket writes the time of the cost. For a cost that can never fit it writes a time above every bound.
func (p *Part) appendBucket(to []float64, o Op) []float64 {
	l, past := p.Limit, p.past
	if past == nil {
		past = &unknownPast
	}
	cost, sign := stored.Span{Whole: math.Inf(1)}, 1.0
	switch {
	case p.Cost < 0:
		cost, _ = l.Takes(magnitude(p.Cost))
		sign = -1
	case p.Cost == 0:
		cost, sign = stored.Span{}, 0
	case p.Cost <= l.Capacity || o == OpRecord:
		cost, _ = l.Takes(p.Cost)
	}
	if o == OpUndo && l.Kind == stored.KindLeaky {
		sign = 2
	}
	early := stored.Span{Whole: -1}
	if l.Kind == stored.KindLeaky {
		early = l.Early
	}
	to = append(to, cost.Whole, cost.Rest, l.Fill.Whole, l.Fill.Rest, float64(l.Den), float64(l.Unit), sign, early.Whole, early.Rest)
	if sign == 2 {
		to = append(to, past.left.Whole, past.left.Rest, past.told)
	}
	if o == OpWithdraw {
		to = append(append(to, past.bookedTo[:]...), past.restored[:]...)
	}
	return to
}

// units returns the cost, cut to the range that matters.
func (p *Part) units() float64 { return float64(max(min(p.Cost, stored.MostUnits), -stored.MostUnits)) }

func magnitude(n int64) int64 {
	if n < -math.MaxInt64 {
		return math.MaxInt64
	}
	return max(n, -n)
}

func flag(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

// Woken returns what the script publishes when units of the part are freed: its key without what all keys of its lane have.
func (p *Part) Woken() string { return p.Key[strings.IndexByte(p.Key, '}')+len("}:"):] }

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
	case l.Kind == stored.KindFirst:
		numbers = numbers[:2]
		numbers[0], numbers[1] = int64(n[0]), int64(n[1])
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
