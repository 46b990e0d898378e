package rls

import (
	"cmp"
	"context"

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
		d, err := engine.Do(ctx, weir.Call{Op: weir.OpRecord, Requests: c.others})
		if p.decision, p.refused = d, !d.Allowed; p.counted.Limit.Spares(err) {
			p.refused, err = false, nil
		}
		return err
	}
	if taking != nil && len(c.takes) == len(taking.requests) && len(c.others) == 0 {
		d, err := engine.Do(ctx, weir.Call{Op: weir.OpTake, Requests: c.takes})
		c.decision, taking.decision, taking.refused = d, d, !d.Allowed
		return err
	}
	if c.list(); len(c.asked) == 0 {
		return nil
	}
	c.results = append(c.results[:0], make([]weir.Result, len(c.asked))...)
	if err := engine.Each(ctx, c.asked, c.results); err != nil {
		return err
	}
	return c.readResults()
}

// askFirst asks the questions beside what is taken, in one call. One that is refused keeps the others from taking.
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
		p.decision, results = results[0].Decision, results[1:]
		p.answered, p.refused = true, p.refused || !p.decision.Allowed
		if p.refused && c.decision.Allowed {
			c.decision = p.decision
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
		default:
			c.asked = append(c.asked, weir.Call{Op: weir.OpPeek, Requests: p.requests})
		}
	}
}

// readResults reads the results of the calls that list has listed.
func (c *call) readResults() error {
	results := c.results
	if len(c.takes) > 0 {
		if results[0].Err != nil {
			return results[0].Err
		}
		c.decision, results = results[0].Decision, results[1:]
	}
	for i := range c.parts {
		p := &c.parts[i]
		if !c.left(p) {
			continue
		}
		if p.op == record && p.counted.hits > 1 {
			p.counted.before, results = results[0].Decision.Remaining, results[1:]
		}
		d, err := results[0].Decision, results[0].Err
		results = results[1:]
		if p.op == record && p.counted.Limit.Spares(err) {
			continue
		}
		if err != nil && p.op != take { // what was taken is taken, with or without figures
			return err
		}
		p.decision = d
		switch {
		case p.op == ask, p.op == record:
			p.refused = !d.Allowed
		case p.op == take && c.decision.Allowed: // the figures are of afterwards
			p.decision.Allowed, p.decision.RetryAfter = true, 0
		case p.op == take && d.Allowed: // alone it would be admitted
			if p.refused = d.Rule == c.decision.Rule && d.Key == c.decision.Key; p.refused {
				p.decision = c.decision
			}
		case p.op == take:
			p.refused = true
		}
	}
	return nil
}
