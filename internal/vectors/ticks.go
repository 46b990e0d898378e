package vectors

import (
	"fmt"
	"math"
	"time"

	"github.com/weirflow/weir"
)

// InTicks returns the scenario with its start reduced and its limits in ticks, or the reason it does not fit. One of the
// calendar stays as it is.
func (s Scenario) InTicks(tick time.Duration, most int64) (_ Scenario, reason string) {
	if s.OfCalendar() {
		return s, ""
	}
	common, ok := Params{Limits: s.AllParams()}.commonPeriod()
	if ok {
		s.T0 = (s.T0%common + common) % common
	}
	longest := int64(0)
	for _, op := range s.Ops {
		at := s.T0 + op.T
		longest = max(longest, at, -at)
		for _, d := range []*int64{op.Want.RetryAfter, op.Want.ResetAfter, op.Want.Delay} {
			if d != nil {
				longest = max(longest, *d)
			}
		}
	}
	if longest > most || s.T0 > most {
		return s, fmt.Sprintf("instants or waits are above %d ticks", most)
	}
	if _, ok := (Params{Limits: s.AllParams()}).InTicks(int64(tick)); !ok {
		return s, fmt.Sprintf("a period is above %v when a nanosecond is read as %v", weir.MaxPeriod, tick)
	}
	s.T0 *= int64(tick)
	return s, ""
}

// commonPeriod returns the least common multiple of the periods, or false if it exceeds 64 bits.
func (p Params) commonPeriod() (common int64, ok bool) {
	common = max(p.Period, 1)
	for _, part := range p.Limits {
		period, ok := part.commonPeriod()
		if !ok {
			return 0, false
		}
		a, b := common, period
		for b != 0 {
			a, b = b, a%b
		}
		if common/a > math.MaxInt64/period {
			return 0, false
		}
		common = common / a * period
	}
	return common, true
}

func (p Params) InTicks(tick int64) (Params, bool) {
	for _, d := range []*int64{&p.Period, &p.MinGap, &p.Origin, &p.Within, &p.For, &p.UpTo} {
		if *d > int64(weir.MaxPeriod)/tick || *d < -int64(weir.MaxPeriod)/tick {
			return p, false
		}
		*d *= tick
	}
	limits := p.Limits
	p.Limits = nil
	for _, part := range limits {
		part, ok := part.InTicks(tick)
		if !ok {
			return p, false
		}
		p.Limits = append(p.Limits, part)
	}
	return p, true
}
