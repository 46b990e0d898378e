package wire

import (
	"encoding/binary"
	"math"

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
