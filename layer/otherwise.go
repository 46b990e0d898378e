package layer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/compiled"
)

// mostTries bounds the tries of a call.
const mostTries = 8

// Otherwise makes the requests that callers give in place of others ([weir.Request.Otherwise]): first a floor for each key, for
// example, and then a pool that all share.
//
// A take, reservation or peek is tried with its requests. If one of them refuses it, and has a request to make in its place,
// that one replaces it, and the call is tried again, all or nothing with the others. So a refusal stays a refusal, and a
// call takes all that it asks for or nothing. A refusal is final if it names a request with nothing in its place, or a [weir.DenyAll]. Nothing
// stands in place of a rule with a [weir.Ban]: a banned key gets no pool. Requests for the same rule and key are one request,
// with the sum of their costs, and are replaced together if each of them can be. A chain has up to 4 requests behind the first,
// each under another rule, and a call is tried up to 8 times. A TakeUpTo replaces only what does not fit once.
//
// The answer to an admitted call describes what was taken, and Answer.Paid has the requests. A refusal describes the first
// one; its RetryAfter is the least of all tries, exact if one request has something in its place, and otherwise an upper bound.
//
// A Record, Return or Reset goes to the first requests; to give back what was taken, use its reservation or Paid. An
// OpReserveAhead of a request with another in its place fails with errors.ErrUnsupported. Each makes the calls that were refused
// again together.
//
// Calls without such requests pass as they are. It is safe for concurrent use.
func Otherwise(e weir.Engine) (weir.Engine, error) {
	if err := checkOver(e, replaces); err != nil {
		return nil, err
	}
	return &replacing{weir.Wrap(e, makeInstead), e}, nil
}

type replacing struct {
	engine
	below weir.Engine
}

// Unwrap returns the engine below, for weir.Find.
func (r *replacing) Unwrap() weir.Engine { return r.below }

func (r *replacing) rank() rank { return replaces }

// makeInstead makes a call, and what is to be made in its place while it is refused.
func makeInstead(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
	if call.Within > 0 {
		next = endsWithin(call.Within, next)
	}
	if call.Op == weir.OpEach {
		if call.Each == nil || !slices.ContainsFunc(call.Each.Calls, func(c weir.Call) bool { return hasOtherwise(c.Requests) }) {
			return next(ctx, call)
		}
		return weir.Answer{}, eachInstead(ctx, call, next)
	}
	if !hasOtherwise(call.Requests) {
		return next(ctx, call)
	}
	c, err := newChain(call)
	if err != nil {
		return weir.Answer{}, err
	}
	for {
		a, err := next(ctx, c.call)
		if err == nil && c.goesOn(&a.Decision) {
			continue
		}
		if a.Paid = c.paid(&a.Decision); a.Reservation != nil && err == nil {
			a.Reservation.Decision = a.Decision
		}
		return a, err
	}
}

// endsWithin has all tries of a call end within the time of the call.
func endsWithin(within time.Duration, next weir.Next) weir.Next {
	until := time.Now().Add(within)
	return func(ctx context.Context, call weir.Call) (weir.Answer, error) {
		call.Within = max(time.Until(until), 1)
		return next(ctx, call)
	}
}

// eachInstead makes the calls of an OpEach, then together those of them that were refused and go on, and so forth.
func eachInstead(ctx context.Context, call weir.Call, next weir.Next) error {
	b := call.Each
	if err := weir.Kit.CheckEach(b.Calls, b.Results); err != nil {
		return err
	}
	var open []*chain
	for i := range b.Calls {
		r := &b.Results[i]
		if r.Err != nil {
			continue
		}
		c, err := newChain(b.Calls[i])
		if r.Err = err; err == nil {
			c.result = r
			open = append(open, c)
		}
	}
	for first := true; len(open) > 0; first = false {
		round := &weir.Batch{Calls: make([]weir.Call, len(open)), Results: make([]weir.Result, len(open))}
		for i, c := range open {
			round.Calls[i] = c.call
		}
		call.Each = round
		_, err := next(ctx, call)
		if err != nil && first {
			return err
		}
		var refused []*chain
		for i, c := range open {
			if *c.result = round.Results[i]; err != nil {
				*c.result = weir.Result{Err: err}
			}
			if c.result.Err == nil && c.goesOn(&c.result.Decision) {
				refused = append(refused, c)
				continue
			}
			c.result.Paid = c.paid(&c.result.Decision)
		}
		open = refused
	}
	return nil
}

// chain is a call, and what is to be made in its place.
type chain struct {
	call   weir.Call       // the next try
	behind []*weir.Request // what is to be made in place of each request; nil for nothing
	tries  int             // that were refused
	first  weir.Decision   // the refusal of the first, with the least RetryAfter
	result *weir.Result    // of a call of an OpEach
}

// newChain returns the first try of a call.
func newChain(call weir.Call) (*chain, error) {
	c := &chain{call: call}
	if !hasOtherwise(call.Requests) {
		return c, nil
	}
	c.call.Requests = alone(call.Requests)
	switch call.Op {
	case weir.OpTake, weir.OpTakeUpTo, weir.OpReserve, weir.OpPeek:
	case weir.OpReserveAhead:
		return nil, weir.Kit.Unsupported(call.Op, "cannot be made of a request with another in its place, which is only asked for")
	default:
		return c, nil
	}
	c.behind = make([]*weir.Request, len(call.Requests))
	for i := range call.Requests {
		if err := checkLinks(call.Op, &call.Requests[i]); err != nil {
			return nil, err
		}
		c.behind[i] = call.Requests[i].Otherwise
	}
	c.call.Final = call.Identity != "" // so that a repeated call finds the try that was admitted
	return c, nil
}

// goesOn notes a decision, and makes the next try of the call if it is refused and there is one. Otherwise it makes the decision the
// answer.
func (c *chain) goesOn(d *weir.Decision) bool {
	if d.Allowed {
		return false
	}
	if c.tries++; c.tries == 1 {
		c.first = *d
	}
	c.first.RetryAfter = min(c.first.RetryAfter, d.RetryAfter)
	if c.tries < mostTries && c.replace(d) {
		return true
	}
	*d = c.first
	return false
}

// replace replaces the requests that a refusal names. It reports whether there is something in the place of each of them.
func (c *chain) replace(d *weir.Decision) (replaced bool) {
	requests, behind := slices.Clone(c.call.Requests), slices.Clone(c.behind)
	for i := range behind {
		q := &requests[i]
		if q.Key != d.Key || q.Rule.Name() != d.Rule {
			continue
		}
		link := behind[i]
		if link == nil || factsOf(q.Rule).capacity == 0 {
			return false
		}
		*q, behind[i], replaced = *link, link.Otherwise, true
		q.Otherwise = nil
	}
	c.call.Requests, c.behind = requests, behind
	return replaced
}

// paid returns the requests of an admitted try, unless they are those of the call.
func (c *chain) paid(d *weir.Decision) []weir.Request {
	if c.tries == 0 || !d.Allowed {
		return nil
	}
	return c.call.Requests
}

func hasOtherwise(requests []weir.Request) bool {
	for i := range requests {
		if requests[i].Otherwise != nil {
			return true
		}
	}
	return false
}

// alone returns the requests with nothing in their places.
func alone(requests []weir.Request) []weir.Request {
	if !hasOtherwise(requests) {
		return requests
	}
	requests = slices.Clone(requests)
	for i := range requests {
		requests[i].Otherwise = nil
	}
	return requests
}

// checkLinks refuses what no engine could make in place of a request: what is wrong is told whether it comes to that or not.
func checkLinks(op weir.Op, q *weir.Request) error {
	names := make([]string, 0, 1+compiled.MaxLinks)
	for at := q; at != nil; at = at.Otherwise {
		if !weir.Kit.Compiled(at.Rule).TakesOne(at.Key, at.Colocation, at.Cost) {
			_, err := enginekit.Merge(op, alone([]weir.Request{*at}))
			return err
		}
		reason := ""
		switch name := at.Rule.Name(); {
		case slices.Contains(names, name):
			reason = fmt.Sprintf("comes back to rule %q", name)
		case at.Otherwise != nil && factsOf(at.Rule).bans:
			reason = fmt.Sprintf("is in place of rule %q, which has a ban: who is banned would not be refused", name)
		case len(names) > compiled.MaxLinks:
			reason = fmt.Sprintf("has more than %d requests, one in place of the other", compiled.MaxLinks)
		default:
			names = append(names, name)
			continue
		}
		return &weir.RequestError{Op: op.String(), Rule: q.Rule.Name(), Field: "otherwise", Reason: reason}
	}
	return nil
}
