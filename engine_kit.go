package weir

import "sync/atomic"

// What an [Engine] in another package needs to decide as [Memory] does: which
// requests it must refuse, which of them share a state, and how the state of
// each limit is named.

// CheckRequests refuses, with a *RequestError, what no engine could decide. The
// op is take, reserve, peek, record or reset. Every engine asks it before it
// writes anything.
func CheckRequests(op string, requests []Request) error { return checkRequests(op, requests) }

// SameState is the first of the requests that is about the same rule and key as
// q, so that the costs of both are summed with [SumCosts]; -1 if there is none.
func SameState(requests []Request, q Request) int { return sameState(requests, &q) }

// SumCosts adds two costs, saturating at the ends of int64.
func SumCosts(a, b int64) int64 { return saturatingAdd(a, b) }

// States name the states that a key has under the rule, one for each of Limits:
// the rule's name, the algorithm with its window period, and the ordinal among
// equals, joined by NUL bytes, none of which holds a NUL itself. Rules with the
// same name share what has the same name here.
func (r *Rule) States() []string {
	names := make([]string, len(r.parts))
	for i := range r.parts {
		names[i] = r.parts[i].state
	}
	return names
}

// Kept is what an engine made of the rule when it saw it first, so that it is
// made once. A rule keeps one value: where engines of different types T ask by
// turns, each makes its own anew.
func Kept[T any](r *Rule, make func(*Rule) *T) *T {
	if kept := r.kept.Load(); kept != nil {
		if value, ok := (*kept).(*T); ok {
			return value
		}
	}
	value := make(r)
	var kept any = value
	r.kept.Store(&kept)
	return value
}

// keptValue is where a rule keeps what Kept made.
type keptValue = atomic.Pointer[any]
