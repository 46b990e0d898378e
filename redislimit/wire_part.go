package redislimit

import (
	"encoding/binary"
	"math"
)

// append writes the parameters of a log or of slots.
func (p *part) append(to []byte) []byte {
	l := p.limit
	if l.kind == kindLog {
		return doubles(to, p.units(), float64(l.capacity), float64(l.period), float64(l.gap), flag(l.denied), flag(l.gate))
	}
	return binary.LittleEndian.AppendUint64(doubles(to, p.units(), float64(l.capacity), float64(l.period)), p.lease)
}

// appendFixed appends the parameters of a limit with states of fixed size.
func (p *part) appendFixed(to []float64, o op) []float64 {
	l := p.limit
	switch {
	case l.kind == kindWindow:
		return append(to, p.units(), float64(l.capacity), float64(l.period), flag(l.weighs))
	case l.kind != kindCycle:
		return p.appendBucket(to, o)
	}
	to = append(to, p.units(), float64(l.capacity), float64(l.period), float64(l.origin))
	if o == opWithdraw {
		to = append(to, p.past.bookedTo[0], p.past.bookedTo[1], p.past.restored[0], p.past.restored[1])
	}
	return to
}

// appendBucket writes the time of the cost. For a cost that can never fit it writes a time above every bound.
func (p *part) appendBucket(to []float64, o op) []float64 {
	l, past := p.limit, p.past
	if past == nil {
		past = &unknownPast
	}
	cost, sign := span{whole: math.Inf(1)}, 1.0
	switch {
	case p.cost < 0:
		cost, _ = l.takes(magnitude(p.cost))
		sign = -1
	case p.cost == 0:
		cost, sign = span{}, 0
	case p.cost <= l.capacity || o == opRecord:
		cost, _ = l.takes(p.cost)
	}
	if o == opUndo && l.kind == kindLeaky {
		sign = 2
	}
	early := span{whole: -1}
	if l.kind == kindLeaky {
		early = l.early
	}
	to = append(to, cost.whole, cost.rest, l.fill.whole, l.fill.rest, float64(l.den), float64(l.unit), sign, early.whole, early.rest)
	if sign == 2 {
		to = append(to, past.left.whole, past.left.rest, past.told)
	}
	if o == opWithdraw {
		to = append(append(to, past.bookedTo[:]...), past.restored[:]...)
	}
	return to
}

// units returns the cost, cut to the range that matters.
func (p *part) units() float64 { return float64(max(min(p.cost, mostUnits), -mostUnits)) }

func magnitude(n int64) int64 {
	if n < -math.MaxInt64 {
		return math.MaxInt64
	}
	return max(n, -n)
}
