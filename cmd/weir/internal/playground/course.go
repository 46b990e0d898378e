package playground

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/tape"
	"github.com/weirflow/weir/simulate"
)

// course draws what one limit does, attempt by attempt. Its level is that of a tape of its own, which decides the same attempts and
// is looked at between them.
type course struct {
	Course
	length, every time.Duration
	start         time.Time
	limits        *tape.Limits
	each, levels  bool
	first         int // the client whose level is shown, with a limit for each
	begun         bool
	next          time.Duration // the next sample
	passed        []passage
	err           error
}

// passage is an admitted request.
type passage struct {
	at    time.Duration // when it goes ahead
	units int64
}

func newCourse(limits []weir.Limit, length time.Duration, each bool) (*course, error) {
	c := &course{length: length, every: max(length/mostSamples, 1), each: each}
	c.Attempts, c.Every = []Attempt{}, c.every.Seconds()
	c.Left, c.levels = levelOf(limits)
	var err error
	if c.limits, err = tape.Of(limits...); err != nil {
		return nil, err
	}
	for _, limit := range limits {
		if d := weir.Describe(limit); d.Refill == weir.RefillWindow && d.Rate.Period > 0 && c.Window == 0 {
			c.Window, c.Phase = d.Rate.Period.Seconds(), d.Phase.Seconds()
		}
	}
	return c, nil
}

func (c *course) add(a simulate.Attempt) {
	if !c.begun {
		c.begun, c.first, c.start = true, a.Client, a.At.Add(-a.After)
	}
	if c.ofLevel(a) && c.err == nil {
		c.sample(a.After)
		_, c.err = c.limits.Take(a.At.UnixNano(), c.key(), a.Cost)
	}
	c.show(a)
	if a.Decision.Allowed && len(c.passed) < mostUnits {
		c.passed = append(c.passed, passage{a.After + a.Decision.Delay, a.Cost})
	}
}

func (c *course) ofLevel(a simulate.Attempt) bool {
	return c.levels && (!c.each || a.Client == c.first)
}

func (c *course) key() string {
	if c.each {
		return strconv.Itoa(c.first)
	}
	return ""
}

// show adds an attempt to those that are drawn.
func (c *course) show(a simulate.Attempt) {
	if len(c.Attempts) >= mostShown {
		c.Unshown++
		return
	}
	shown := Attempt{At: a.After.Seconds(), Client: a.Client, Cost: a.Cost, Again: a.Retries, Passed: a.Decision.Allowed, Delay: a.Decision.Delay.Seconds()}
	switch {
	case a.Decision.Allowed:
	case a.Decision.RetryAfter == weir.Never:
		shown.Retry = -1
	default:
		shown.Retry = a.Decision.RetryAfter.Seconds()
	}
	c.Attempts = append(c.Attempts, shown)
}

// sample looks at the level at each step before an instant.
func (c *course) sample(before time.Duration) {
	for ; c.next < before && c.err == nil; c.next += c.every {
		var d weir.Decision
		if d, c.err = c.limits.Peek(c.start.UnixNano()+int64(c.next), c.key(), 1); c.err != nil {
			return
		}
		c.Capacity = d.Limit
		level := d.Remaining
		if !c.Left {
			level = max(d.Limit-d.Remaining, 0)
		}
		c.Level = append(c.Level, level)
	}
}

// done ends the course.
func (c *course) done() Course {
	if c.begun && c.levels && c.err == nil {
		c.sample(c.length)
	}
	c.seconds()
	return c.Course
}

// seconds computes the most that goes ahead within any second that ends in a step.
func (c *course) seconds() {
	slices.SortStableFunc(c.passed, func(a, b passage) int { return cmp.Compare(a.at, b.at) })
	c.Second = make([]int64, int((c.length+c.every-1)/c.every))
	sum, oldest, next := int64(0), 0, 0
	expire := func(now time.Duration) {
		for ; oldest < next && c.passed[oldest].at <= now-time.Second; oldest++ {
			sum -= c.passed[oldest].units
		}
	}
	for i := range c.Second {
		expire(time.Duration(i) * c.every)
		c.Second[i] = sum
		for ; next < len(c.passed) && c.passed[next].at < time.Duration(i+1)*c.every; c.Second[i] = max(c.Second[i], sum) {
			sum += c.passed[next].units
			next++
			expire(c.passed[next-1].at)
		}
	}
}
