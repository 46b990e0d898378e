package check

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/replay"
	"github.com/weirflow/weir/internal/tape"
)

// permits are the units of a caller that takes all it can after a pause.
type permits struct {
	Length time.Duration
	Steps  []permitStep
}

// permitStep is an instant when units go ahead, after the start, and their sum until then.
type permitStep struct {
	At    time.Duration
	Total int64
}

// permitSteps bounds the steps. A limit of many units takes several in each step.
const permitSteps = 2000

// permitsOf runs such a caller for about three windows or bursts. It begins at three quarters of an aligned window, so
// that a boundary comes. ok is false for a limit without a bound, or that gives nothing.
func permitsOf(c replay.Candidate) (p permits, ok bool, err error) {
	units, rate := int64(0), c.Rate()
	for _, limit := range c.Limits {
		d := weir.Describe(limit)
		n := d.Capacity
		switch {
		case d.Owes || d.Stateless:
			n = 0
		case d.Delays: // a queue may be longer than any picture
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
	fill := tape.Nanoseconds(float64(units) / tape.PerNano(rate))
	p.Length = min(max(3*rate.Period, 2*fill), weir.MaxPeriod)
	chunk := max(1, (units/2+tape.UnitsIn(rate, p.Length)/2)*4/permitSteps)
	chunk = min(chunk, units)

	now := tape.Start + int64(weir.MaxPeriod)/int64(rate.Period)*int64(rate.Period)
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
			return p, false, fmt.Errorf("permits: %w", err)
		case d.Allowed:
			total += chunk
			at := time.Duration(tape.Later(now-begin, int64(d.Delay)))
			if at > p.Length { // and so are all later ones
				return p, len(p.Steps) > 0, nil
			}
			p.Steps = append(p.Steps, permitStep{at, total})
		case d.RetryAfter > weir.MaxPeriod:
			return p, len(p.Steps) > 0, nil
		default:
			now += int64(max(1, d.RetryAfter))
		}
	}
	return p, len(p.Steps) > 0, nil
}

// throttle is the throttling curve of a WarmUp: the time between two units, by the number of units stored in a pause.
type throttle struct {
	Threshold, Ceiling float64 // stored units where the limit begins to slow down, and the most it stores
	Stable, Cold       time.Duration
	Measured           []throttlePoint // what a limiter does, from the ceiling down
}

// throttlePoint is the time between two units at a number of stored units.
type throttlePoint struct {
	Stored float64
	Each   time.Duration
}

// throttleOf measures a limiter that begins cold. The threshold and the ceiling are Guava's. ok is false for a limit
// other than a WarmUp, which has no such curve.
func throttleOf(limit weir.Limit) (_ throttle, ok bool, err error) {
	l, ok := limit.(weir.WarmUp)
	if !ok {
		return throttle{}, false, nil
	}
	stable := float64(l.Rate.Period) / float64(l.Rate.Count)
	factor := l.Cold
	if factor == 0 {
		factor = 3
	}
	t := throttle{Stable: time.Duration(stable), Cold: time.Duration(stable * factor)}
	t.Threshold = float64(l.Over) / stable / 2
	t.Ceiling = t.Threshold + 2*float64(l.Over)/(stable+stable*factor)
	now := tape.Start
	limiter, err := weir.NewWith(l, weir.Options{Clock: func() int64 { return now }})
	if err != nil {
		return throttle{}, true, fmt.Errorf("throttling curve: %w", err)
	}
	const points = 40
	chunk := max(1, int64(t.Ceiling/points))
	for stored := t.Ceiling; stored >= float64(chunk); stored -= float64(chunk) {
		if d := limiter.Take(chunk); !d.Allowed {
			break
		}
		wait := limiter.Peek(1).RetryAfter
		t.Measured = append(t.Measured, throttlePoint{stored - float64(chunk)/2, wait / time.Duration(chunk)})
		now += int64(wait)
	}
	return t, true, nil
}
