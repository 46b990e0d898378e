package redislimit

import (
	"cmp"
	"context"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// composed is the answer to the only decision of a submission. The call composes it, not the caller: while thousands of
// callers wait, their stacks leave the processor's caches, and each would then fetch its own for this.
type composed struct {
	asked   bool          // the call has to compose the answer
	verb    op            // of the caller
	request int           // the index of the request that has the names
	answer  weir.Decision // without the names of its rule and key
}

// inOneCall answers s, which has one decision, with one call of the script.
func (e *Engine) inOneCall(ctx context.Context, o op, s *submission, identity string, requests []weir.Request) (times int64, d weir.Decision, err error) {
	q := &s.one[0]
	e.identify(q, identity)
	s.decisions = s.one[:]
	s.composed.verb, s.composed.asked = o, o != opReset && !withoutStates(requests)
	asked := cmp.Or(q.first, q.op)
	if err := e.ask(ctx, s); err != nil {
		return 0, weir.Decision{}, cannotDecide(o.String(), asked.uncounted(err))
	}
	switch {
	case q.err == errCrossing:
		times, d, err = e.across(ctx, o, *q, identity, requests)
	case q.err != nil:
		err = cannotDecide(o.String(), q.err)
	case s.composed.asked:
		times, d = q.count(), named(s.composed.answer, &requests[s.composed.request])
	case o != opReset:
		times, d = q.count(), answer(o, q.parts, requests)
	}
	e.release(s)
	return times, d, err
}

// compose composes the answer if the caller wants it.
func (s *submission) compose() {
	if c := &s.composed; c.asked && s.err == nil && s.one[0].err == nil {
		c.answer, c.request = compose(c.verb, s.one[0].parts)
	}
}

// answer combines the measurements of a decision's parts with those of limits without a state.
func answer(o op, parts []part, requests []weir.Request) weir.Decision {
	d, request := compose(o, allParts(parts, requests))
	return named(d, &requests[request])
}

// compose combines the measurements of parts. It returns the index of the request that decided.
func compose(o op, parts []part) (d weir.Decision, request int) {
	if o == opTake && len(parts) == 1 {
		d, _ = enginekit.Compose(weir.OpTake, []*enginekit.Measure{&parts[0].measure})
		return d, parts[0].request
	}
	var space [4]*enginekit.Measure
	measures := space[:0]
	for i := range parts {
		measures = append(measures, &parts[i].measure)
	}
	d, binding := enginekit.Compose(o.verb(), measures)
	return d, parts[binding].request
}

func named(d weir.Decision, q *weir.Request) weir.Decision {
	d.Rule, d.Key = q.Rule.Name(), q.Key
	return d
}
