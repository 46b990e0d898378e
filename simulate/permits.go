package simulate

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/tape"
)

// Permits is what a limit gives a caller that asks for as much as it may get, after a pause.
type Permits struct {
	Length time.Duration
	Steps  []PermitStep
}

// PermitStep is the instant, after the start, at which units go ahead, and their sum until then.
type PermitStep struct {
	At    time.Duration
	Total int64
}

// permitSteps bounds the steps. A limit of many units takes several in each step.
const permitSteps = 2000

// Permits runs such a caller for about three windows or bursts. It begins at three quarters of an aligned window, so
// that a boundary comes. ok is false for a limit without a bound, or that gives nothing.
func (c Candidate) Permits() (p Permits, ok bool, err error) {
	units, rate := int64(0), c.Rate()
	for _, limit := range c.Limits {
		n := capacity(limit)
		if d := weir.Describe(limit); d.Delays { // a queue may be longer than any picture
			n = min(n, max(d.Burst+d.Rate.Count, permitSteps))
		}
		if n > 0 && (units == 0 || n < units) {
			units = n
		}
	}
	if rate.Count == 0 {
		return p, false, nil
	}
	units = max(units, 1)
	fill := nanoseconds(float64(units) / perNano(rate))
	p.Length = min(max(3*rate.Period, 2*fill), weir.MaxPeriod)
	chunk := max(1, (units/2+unitsIn(rate, p.Length)/2)*4/permitSteps)
	chunk = min(chunk, units)

	now := virtualStart + int64(weir.MaxPeriod)/int64(rate.Period)*int64(rate.Period)
	now += (-now%int64(rate.Period)+int64(rate.Period))%int64(rate.Period) + int64(rate.Period)/4*3
	begin := now
	limits, err := tape.Of(c.Limits...)
	if err != nil {
		return p, false, err
	}
	for total := int64(0); now-begin <= int64(p.Length) && len(p.Steps) <= 2*permitSteps; {
		d, err := limits.Take(now, "", chunk)
		switch {
		case err != nil:
			return p, false, fmt.Errorf("simulate: permits: %w", err)
		case d.Allowed:
			total += chunk
			at := time.Duration(later(now-begin, int64(d.Delay)))
			if at > p.Length { // and so are all later ones
				return p, len(p.Steps) > 0, nil
			}
			p.Steps = append(p.Steps, PermitStep{at, total})
		case d.RetryAfter > weir.MaxPeriod:
			return p, len(p.Steps) > 0, nil
		default:
			now += int64(max(1, d.RetryAfter))
		}
	}
	return p, len(p.Steps) > 0, nil
}

// Throttle is the throttling curve of a WarmUp: the time between two units, by the number of units stored in a pause.
type Throttle struct {
	Threshold, Ceiling float64 // stored units at which the limit begins to slow down, and the most it stores
	Stable, Cold       time.Duration
	Measured           []ThrottlePoint // what a limiter does, from the ceiling down
}

// ThrottlePoint is the time between two units at a number of stored units.
type ThrottlePoint struct {
	Stored float64
	Each   time.Duration
}

// ThrottleOf measures a limiter that begins cold. The threshold and the ceiling are Guava's. ok is false for a limit
// other than a WarmUp, which has no such curve.
func ThrottleOf(limit weir.Limit) (_ Throttle, ok bool, err error) {
	l, ok := limit.(weir.WarmUp)
	if !ok {
		return Throttle{}, false, nil
	}
	stable := float64(l.Rate.Period) / float64(l.Rate.Count)
	factor := l.Cold
	if factor == 0 {
		factor = 3
	}
	t := Throttle{Stable: time.Duration(stable), Cold: time.Duration(stable * factor)}
	t.Threshold = float64(l.Over) / stable / 2
	t.Ceiling = t.Threshold + 2*float64(l.Over)/(stable+stable*factor)
	now := virtualStart
	limiter, err := weir.NewWith(l, weir.Options{Clock: func() int64 { return now }})
	if err != nil {
		return Throttle{}, true, fmt.Errorf("simulate: throttle: %w", err)
	}
	const points = 40
	chunk := max(1, int64(t.Ceiling/points))
	for stored := t.Ceiling; stored >= float64(chunk); stored -= float64(chunk) {
		if d := limiter.Take(chunk); !d.Allowed {
			break
		}
		wait := limiter.Peek(1).RetryAfter
		t.Measured = append(t.Measured, ThrottlePoint{stored - float64(chunk)/2, wait / time.Duration(chunk)})
		now += int64(wait)
	}
	return t, true, nil
}
