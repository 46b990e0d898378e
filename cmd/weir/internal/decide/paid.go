package decide

import (
	"iter"
	"slices"

	"github.com/weirflow/weir"
)

// A request may have others that are made in its place where it is refused (weir.Request.Otherwise). The engine of
// Options.Chains makes them, and its answer names the request that paid. Everything after a decision concerns the
// request that paid, not the one that was asked: the answer, counts, the undo of a wait, tokens and holds. All of them
// get it from [Made] and [On].

// Made is a decision, and the requests that it is on.
type Made struct {
	weir.Decision
	// On are the requests of the call, with those that paid in place of others, or that the refusal names.
	On []weir.Request
	// PaidBy is the rule that paid in place of another: the one that the decision names if it did, and otherwise the first that did.
	PaidBy string
}

// MadeOf returns what was made of a call in an OpEach.
func MadeOf(call *weir.Call, r *weir.Result) Made {
	made := Made{Decision: r.Decision, On: call.Requests}
	if r.Err == nil && Chained(call.Requests) {
		made.find(call.Requests, r.Paid)
	}
	return made
}

// find finds the requests that a decision is on: what paid, or what a refusal names.
func (m *Made) find(asked, paid []weir.Request) {
	m.On = Alone(asked)
	if m.Allowed && paid == nil {
		return
	}
	for i := range asked {
		for q := asked[i].Otherwise; q != nil; q = q.Otherwise {
			names := q.Key == m.Key && q.Rule.Name() == m.Rule
			if paid != nil && !sameKey(q, &paid[i]) || paid == nil && !names {
				continue
			}
			m.On[i] = *q
			if m.On[i].Otherwise = nil; m.Allowed && (m.PaidBy == "" || names) {
				m.PaidBy = q.Rule.Name()
			}
		}
	}
}

func sameKey(a, b *weir.Request) bool { return a.Key == b.Key && a.Rule.Name() == b.Rule.Name() }

// Chained reports whether some requests have others that may be made in their place.
func Chained(requests []weir.Request) bool {
	for i := range requests {
		if requests[i].Otherwise != nil {
			return true
		}
	}
	return false
}

// Links returns requests with those that may be made in their place.
func Links(requests []weir.Request) iter.Seq2[int, weir.Request] {
	return func(yield func(int, weir.Request) bool) {
		for i := range requests {
			for q := &requests[i]; q != nil; q = q.Otherwise {
				if !yield(i, *q) {
					return
				}
			}
		}
	}
}

// Alone returns requests without those that may be made in their place, as a copy if there are some.
func Alone(requests []weir.Request) []weir.Request {
	if !Chained(requests) {
		return requests
	}
	requests = slices.Clone(requests)
	for i := range requests {
		requests[i].Otherwise = nil
	}
	return requests
}

// engineOf returns the engine of calls with these requests.
func (d *Desk) engineOf(requests []weir.Request) weir.Engine {
	if Chained(requests) {
		return d.chains
	}
	return d.engine
}
