// Package otherwisetest compares layer.Otherwise over an engine with a slow model: try, replace, try again.
package otherwisetest

import (
	"context"
	"slices"

	"github.com/weirflow/weir"
)

// model makes the calls of Otherwise one after the other on an engine of its own.
type model struct{ engine weir.Engine }

// attempt is a call of the model, and the answer so far.
type attempt struct {
	call   weir.Call
	tries  int
	answer weir.Answer
	err    error
	over   bool
	first  weir.Decision
}

func (m model) make(call weir.Call) (weir.Answer, error) {
	a := &attempt{call: call}
	for !a.over {
		m.try(a)
	}
	return a.answer, a.err
}

// each makes calls in rounds: the first try of all, then the second one of those that go on, and so forth.
func (m model) each(calls []weir.Call) (results []weir.Result) {
	all := make([]*attempt, len(calls))
	for i := range calls {
		all[i] = &attempt{call: calls[i]}
	}
	for range mostTries {
		for _, a := range all {
			if !a.over {
				m.try(a)
			}
		}
	}
	for _, a := range all {
		results = append(results, weir.Result{Decision: a.answer.Decision, Paid: a.answer.Paid, Err: a.err})
	}
	return results
}

const mostTries = 8

// try is the model: it tries, and replaces what refuses.
func (m model) try(a *attempt) {
	plain := a.call
	plain.Requests = withoutOtherwise(a.call.Requests)
	a.answer, a.err = m.engine.Do(context.Background(), plain)
	a.tries++
	d := &a.answer.Decision
	if a.err != nil || d.Allowed {
		if a.over = true; a.err == nil && a.tries > 1 {
			a.answer.Paid = plain.Requests
		}
		return
	}
	if a.tries == 1 {
		a.first = *d
	}
	a.first.RetryAfter = min(a.first.RetryAfter, d.RetryAfter)
	refuses := func(q weir.Request) bool { return q.Rule.Name() == d.Rule && q.Key == d.Key }
	final := func(q weir.Request) bool {
		return refuses(q) && (q.Otherwise == nil || q.Rule.Limits()[0] == weir.DenyAll{})
	}
	if a.tries == mostTries || slices.ContainsFunc(a.call.Requests, final) {
		*d, a.over = a.first, true
		return
	}
	a.call.Requests = slices.Clone(a.call.Requests)
	for i, q := range a.call.Requests {
		if refuses(q) {
			a.call.Requests[i] = *q.Otherwise
		}
	}
}

func withoutOtherwise(requests []weir.Request) []weir.Request {
	requests = slices.Clone(requests)
	for i := range requests {
		requests[i].Otherwise = nil
	}
	return requests
}
