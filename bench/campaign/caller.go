package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit"
)

// caller makes one call after another of one world.
type caller struct {
	process *process
	world   *connection
	random  *rand.Rand
}

// call makes calls until ctx ends. It finishes the last one.
func (c *caller) call(ctx context.Context) {
	for ctx.Err() == nil {
		i := c.draw(func(s *subject) bool { return s.use != useLine && s.use != useRate })
		if s := &c.process.subjects[i]; s.use == useSlots {
			c.holdSlots(ctx, i)
		} else {
			c.askLimit(i)
		}
		pause(ctx, time.Duration(c.random.Int64N(int64(25*time.Millisecond))))
	}
}

// draw returns the index of a random subject that fits.
func (c *caller) draw(fits func(*subject) bool) int {
	for {
		if i := c.random.IntN(len(c.process.subjects)); fits(&c.process.subjects[i]) {
			return i
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// engine returns the engine of a subject.
func (c *caller) engine(s *subject) *redislimit.Engine {
	if s.use == useClocked {
		return c.world.clocked
	}
	return c.world.engine
}

// askLimit makes one call about a subject without slots.
func (c *caller) askLimit(i int) {
	s := &c.process.subjects[i]
	cost := int64(1)
	if c.random.IntN(4) == 0 {
		cost = 1 + c.random.Int64N(4)
	}
	verb := c.random.IntN(100)
	switch {
	case s.use == useReset && verb < 1:
		c.reset(i)
	case s.use == useReturn && verb < 30:
		c.reserve(i, cost)
	case s.use == useReturn && verb < 33:
		c.giveBack(i, cost)
	case s.use == useBook && verb < 30:
		c.book(i, cost)
	case verb < 38:
		c.peek(i, cost)
	case verb < 39:
		c.record(i)
	case verb < 50:
		c.takeUpTo(i, cost)
	case verb < 60:
		c.takeEach(i)
	case verb < 70:
		c.takeAgain(i, cost)
	case verb < 80:
		c.takeSeveral(i, cost)
	default:
		c.take(i, cost)
	}
}

func outcome(err error) string {
	if err == nil {
		return "answered"
	}
	if failed, ok := errors.AsType[*redislimit.Error](err); ok {
		counted := map[weir.Counted]string{weir.CountedNo: "not counted", weir.CountedYes: "counted", weir.CountedUnknown: "perhaps counted"}[failed.Counted]
		return string(failed.Reason) + ", " + counted
	}
	return err.Error()
}

// count counts an event for the report.
func (c *caller) count(what string) { c.process.count(c.world.number, what, 1) }

// note writes a record about a subject.
func (c *caller) note(kind recordKind, i int, units, sent, answered int64, what string) {
	c.process.journal.write(record{Kind: kind, World: c.world.number, Subject: i, Process: c.process.number, Units: units, Sent: sent, Answered: answered, What: what})
}

// took notes the result of a take.
func (c *caller) took(verb string, i int, allowed bool, units, sent, answered int64, err error) {
	switch {
	case err == nil && allowed:
		c.note(recordUsed, i, units, sent, answered, verb)
	case err == nil:
		c.count(verb + ": refused")
	case weir.WasCounted(err) != weir.CountedNo:
		c.note(recordUnanswered, i, units, sent, never, verb)
	}
}

func (c *caller) take(i int, cost int64) {
	s := &c.process.subjects[i]
	var d weir.Decision
	sent, answered, err := c.timed("Take", i, func(ctx context.Context) (err error) {
		d, err = c.engine(s).Take(ctx, s.request(cost))
		return err
	})
	c.took("Take", i, d.Allowed, cost, sent, answered, err)
}

// takeAgain takes with an identity, and asks again after an error.
func (c *caller) takeAgain(i int, cost int64) {
	s := &c.process.subjects[i]
	take := weir.Call{Op: weir.OpTake, Requests: []weir.Request{s.request(cost)}, Identity: strconv.FormatUint(c.random.Uint64(), 36)}
	first := int64(0)
	for range 4 {
		var d weir.Decision
		sent, answered, err := c.timed("Take again", i, func(ctx context.Context) (err error) {
			a, err := c.engine(s).Do(ctx, take)
			d = a.Decision
			return err
		})
		if first == 0 {
			first = sent
		}
		c.took("Take again", i, d.Allowed, cost, first, answered, err)
		if err == nil {
			return
		}
	}
}

func (c *caller) takeUpTo(i int, cost int64) {
	s := &c.process.subjects[i]
	var times int64
	most := 1 + c.random.Int64N(6)
	sent, answered, err := c.timed("TakeUpTo", i, func(ctx context.Context) (err error) {
		times, _, err = weir.TakeUpTo(ctx, c.engine(s), most, s.request(cost))
		return err
	})
	units := times * cost
	if err != nil {
		units = most * cost
	}
	c.took("TakeUpTo", i, times > 0, units, sent, answered, err)
}

// takeEach takes of several subjects, each on its own.
func (c *caller) takeEach(i int) {
	list := c.together(i, 5, func(*subject) bool { return true })
	requests, results := make([]weir.Request, len(list)), make([]weir.Result, len(list))
	for j, k := range list {
		requests[j] = c.process.subjects[k].request(1)
	}
	sent, answered, err := c.timed("Each", i, func(ctx context.Context) error {
		return c.engine(&c.process.subjects[i]).Each(ctx, enginekit.Calls(weir.OpTake, requests...), results)
	})
	for j, k := range list {
		failed := results[j].Err
		if failed == nil && !results[j].Decision.Allowed && err != nil {
			failed = err
		}
		c.took("Each", k, results[j].Decision.Allowed, 1, sent, answered, failed)
	}
}

// takeSeveral takes of two subjects at once, in a cluster across lanes.
func (c *caller) takeSeveral(i int, cost int64) {
	list := c.together(i, 2, func(s *subject) bool { return combines(s.rule) })
	if !combines(c.process.subjects[i].rule) {
		c.take(i, cost)
		return
	}
	requests := make([]weir.Request, len(list))
	for j, k := range list {
		requests[j] = c.process.subjects[k].request(cost)
	}
	var d weir.Decision
	sent, answered, err := c.timed("Take of several keys", i, func(ctx context.Context) (err error) {
		d, err = c.engine(&c.process.subjects[i]).Take(ctx, requests...)
		return err
	})
	for _, k := range list {
		c.took("Take of several keys", k, d.Allowed, cost, sent, answered, err)
	}
}

// together returns i and up to n-1 other subjects that the same engine decides.
func (c *caller) together(i, n int, fits func(*subject) bool) []int {
	list, all := []int{i}, c.process.subjects
	for range 4 * n {
		k := c.random.IntN(len(all))
		other := &all[k]
		if len(list) < n && k != i && other.use.alone() && (other.use == useClocked) == (all[i].use == useClocked) && fits(other) && !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	return list
}

// combines reports whether a rule can be decided beside another one.
func combines(rule *weir.Rule) bool {
	for _, l := range rule.Limits() {
		switch l := l.(type) {
		case weir.LeakyBucket:
			return false
		case weir.SlidingLog:
			if l.CountDenied {
				return false
			}
		}
	}
	return true
}

func (c *caller) peek(i int, cost int64) {
	s := &c.process.subjects[i]
	_, _, _ = c.timed("Peek", i, func(ctx context.Context) error {
		_, err := c.engine(s).Peek(ctx, s.request(cost))
		return err
	})
}

// record counts a unit whether it fits or not. That admits nothing.
func (c *caller) record(i int) {
	s := &c.process.subjects[i]
	_, _, _ = c.timed("Record", i, func(ctx context.Context) error {
		_, err := c.engine(s).Record(ctx, s.request(1))
		return err
	})
}

func (c *caller) reset(i int) {
	s := &c.process.subjects[i]
	sent, answered, err := c.timed("Reset", i, func(ctx context.Context) error { return c.engine(s).Reset(ctx, s.request(0)) })
	if err == nil {
		c.note(recordReset, i, 0, sent, answered, "Reset")
	} else if weir.WasCounted(err) != weir.CountedNo {
		c.note(recordReset, i, 0, sent, never, "Reset")
	}
}
