package rls

import (
	"cmp"
	"context"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// decide makes one call to the engine, if the call needs it. If a rule refuses without the engine, or a question beside it
// is refused, nothing is taken.
func (c *call) decide(ctx context.Context, engine *decide.Desk) error {
	if len(c.parts) > 1 {
		if err := c.askFirst(ctx, engine); err != nil {
			return err
		}
	}
	if !c.decision.Allowed {
		c.takes = c.takes[:0]
	}
	taking := c.taking()
	switch {
	case taking == nil && len(c.others) == 0:
		return nil
	case len(c.parts) == 1 && c.parts[0].op == record && c.parts[0].counted.hits == 1:
		p := &c.parts[0]
		made, err := engine.Do(ctx, weir.Call{Op: weir.OpRecord, Requests: c.others})
		if p.decision, p.refused = made.Decision, !made.Allowed; p.counted.Limit.Spares(err) {
			p.refused, err = false, nil
		}
		return err
	}
	if taking != nil && len(c.takes) == len(taking.requests) && len(c.others) == 0 {
		made, err := engine.Do(ctx, weir.Call{Op: weir.OpTake, Requests: c.takes})
		c.decision, taking.decision, taking.requests, taking.refused = made, made.Decision, made.On, !made.Allowed
		return err
	}
	if c.list(); len(c.asked) == 0 {
		return nil
	}
	c.results = append(c.results[:0], make([]weir.Result, len(c.asked))...)
	if err := engine.Each(ctx, c.asked, c.results); err != nil {
		return err
	}
	if err := c.readResults(); err != nil {
		return err
	}
	c.lookAgain(ctx, engine)
	return nil
}

// askFirst asks the questions beside the takes, in one call. One that is refused keeps the others from taking.
func (c *call) askFirst(ctx context.Context, engine *decide.Desk) error {
	if len(c.takes) == 0 || !c.decision.Allowed {
		return nil
	}
	for i := range c.parts {
		if p := &c.parts[i]; p.op == ask && len(p.requests) > 0 {
			c.asked = append(c.asked, weir.Call{Op: weir.OpPeek, Requests: p.requests})
		}
	}
	if len(c.asked) == 0 {
		return nil
	}
	results := make([]weir.Result, len(c.asked))
	err := engine.Each(ctx, c.asked, results)
	c.asked = c.asked[:0]
	for i := range c.parts {
		p := &c.parts[i]
		if p.op != ask || len(p.requests) == 0 {
			continue
		}
		err = cmp.Or(err, results[0].Err)
		made := decide.MadeOf(&weir.Call{Requests: p.requests}, &results[0])
		p.decision, p.requests, results = made.Decision, made.On, results[1:]
		p.answered, p.refused = true, p.refused || !p.decision.Allowed
		if p.refused && c.decision.Allowed {
			c.decision = made
		}
	}
	return err
}

// left reports whether the engine has still to be asked about a descriptor. Answers as those of envoyproxy/ratelimit have
// the figures of descriptors that did not take, too.
func (c *call) left(p *part) bool {
	return len(p.requests) > 0 && !p.answered && (p.op != take || len(c.takes) > 0 || c.in.compat != nil)
}

// taking returns the first descriptor that takes, or nil.
func (c *call) taking() *part {
	for i := range c.parts {
		if p := &c.parts[i]; p.op == take && len(p.requests) > 0 && len(c.takes) > 0 {
			return p
		}
	}
	return nil
}

// list lists the calls to the engine: one decision on all that take, then what each other descriptor asks, or its
// figures. The statistics need what remained before several hits.
func (c *call) list() {
	if len(c.takes) > 0 {
		c.asked = append(c.asked, weir.Call{Op: weir.OpTake, Requests: c.takes})
	}
	for i := range c.parts {
		p := &c.parts[i]
		switch {
		case !c.left(p):
		case p.op == giveBack:
			c.asked = append(c.asked, weir.Call{Op: weir.OpReturn, Requests: p.requests})
		case p.op == record:
			if p.counted.hits > 1 {
				c.asked = append(c.asked, weir.Call{Op: weir.OpPeek, Requests: p.requests})
			}
			c.asked = append(c.asked, weir.Call{Op: weir.OpRecord, Requests: p.requests})
		case p.op == take && len(c.takes) > 0: // the payer is not known yet
			c.asked = append(c.asked, weir.Call{Op: weir.OpPeek, Requests: decide.Alone(p.requests)})
		default:
			c.asked = append(c.asked, weir.Call{Op: weir.OpPeek, Requests: p.requests})
		}
	}
}

// readResults reads the results of the calls that list has listed.
func (c *call) readResults() error {
	calls, results := c.asked, c.results
	next := func() (made decide.Made, err error) {
		made, err = decide.MadeOf(&calls[0], &results[0]), results[0].Err
		calls, results = calls[1:], results[1:]
		return made, err
	}
	if len(c.takes) > 0 {
		made, err := next()
		if err != nil {
			return err
		}
		c.decision = made
		c.divide()
	}
	for i := range c.parts {
		p := &c.parts[i]
		if !c.left(p) {
			continue
		}
		if p.op == record && p.counted.hits > 1 {
			made, _ := next()
			p.counted.before = made.Remaining
		}
		made, err := next()
		if p.op == record && p.counted.Limit.Spares(err) {
			continue
		}
		if err != nil && p.op != take { // what was taken is taken, with or without figures
			return err
		}
		if p.op == take {
			c.show(p, made)
			continue
		}
		p.decision, p.requests = made.Decision, made.On
		if p.op == ask || p.op == record {
			p.refused = !made.Allowed
		}
	}
	return nil
}

// divide gives the descriptors that take their parts of the requests that the decision is on. It notes what to peek at again: after
// another rule has paid, the figures were asked for too early, and after a refusal without what may be made in place of a request.
func (c *call) divide() {
	on := c.decision.On
	for i := range c.parts {
		p := &c.parts[i]
		if p.op != take {
			continue
		}
		asked, n := p.requests, len(p.requests)
		p.requests, on = on[:n:n], on[n:]
		switch {
		case c.decision.PaidBy != "":
			p.again = p.requests
		case !c.decision.Allowed && decide.Chained(asked):
			p.again = asked
		}
	}
}

// show has a descriptor that takes show its own figures.
func (c *call) show(p *part, made decide.Made) {
	d := &c.decision.Decision
	switch {
	case d.Allowed: // the figures are of afterwards
		p.decision, p.requests, p.refused = made.Decision, made.On, false
		p.decision.Allowed, p.decision.RetryAfter = true, 0
	case !made.Allowed:
		p.decision, p.requests, p.refused = made.Decision, made.On, true
	case slices.ContainsFunc(p.requests, func(q weir.Request) bool { return q.Rule.Name() == d.Rule && q.Key == d.Key }): // alone it would be admitted
		p.decision, p.refused = *d, true
	default:
		p.decision, p.requests, p.refused = made.Decision, made.On, false
	}
}

// lookAgain asks for the figures of descriptors that others paid for, or would have to. Without an answer they show the
// figures of their own rules.
func (c *call) lookAgain(ctx context.Context, engine *decide.Desk) {
	var asked []weir.Call
	var of []*part
	for i := range c.parts {
		if p := &c.parts[i]; len(p.again) > 0 {
			asked, of = append(asked, weir.Call{Op: weir.OpPeek, Requests: p.again}), append(of, p)
		}
	}
	if len(asked) == 0 {
		return
	}
	results := make([]weir.Result, len(asked))
	if engine.Each(ctx, asked, results) != nil {
		return
	}
	for i, p := range of {
		if results[i].Err == nil {
			c.show(p, decide.MadeOf(&asked[i], &results[i]))
		}
	}
}
