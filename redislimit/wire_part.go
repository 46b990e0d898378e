package redislimit

import (
	"encoding/binary"
	"math"
)

// append writes the parameters of the part's kind.
func (p *part) append(to []byte, o op) []byte {
	l := p.limit
	switch l.kind {
	case kindBucket, kindLeaky:
		return p.appendBucket(to, o)
	case kindWindow:
		return doubles(to, p.units(), float64(l.capacity), float64(l.period), flag(l.weighs))
	case kindCycle:
		to = doubles(to, p.units(), float64(l.capacity), float64(l.period), float64(l.origin))
		if o == opWithdraw {
			to = doubles(to, p.past.bookedTo[0], p.past.bookedTo[1], p.past.restored[0], p.past.restored[1])
		}
		return to
	case kindLog:
		return doubles(to, p.units(), float64(l.capacity), float64(l.period), float64(l.gap), flag(l.denied), flag(l.gate))
	}
	to = doubles(to, p.units(), float64(l.capacity), float64(l.period))
	return binary.LittleEndian.AppendUint64(to, p.lease)
}

// appendBucket writes the time of the cost. For a cost that can never fit it writes a time above every bound.
func (p *part) appendBucket(to []byte, o op) []byte {
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
	to = doubles(to, cost.whole, cost.rest, l.fill.whole, l.fill.rest, float64(l.den), float64(l.unit), sign)
	if l.kind == kindLeaky {
		to = doubles(to, l.early.whole, l.early.rest)
	}
	if sign == 2 {
		to = doubles(to, past.left.whole, past.left.rest, past.told)
	}
	if o == opWithdraw {
		to = doubles(doubles(to, past.bookedTo[:]...), past.restored[:]...)
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
