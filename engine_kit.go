package weir

import (
	"slices"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
)

// What an [Engine] in another package needs to decide as [Memory] does: which
// requests it must refuse, which of them share a state, and how the state of
// each limit is named.

// CheckRequests refuses, with a *RequestError, what no engine could decide. The
// op is take, reserve, peek, record or reset. Every engine asks it before it
// writes anything.
func CheckRequests(op string, requests []Request) error {
	_, err := mergeRequests(op, requests, nil)
	return err
}

// SameState is the first of the requests that is about the same rule and key as
// q, so that the costs of both are summed with [SumCosts]; -1 if there is none.
func SameState(requests []Request, q Request) int {
	return slices.IndexFunc(requests, func(r Request) bool { return r.Key == q.Key && r.Rule.Name() == q.Rule.Name() })
}

// SumCosts adds two costs, saturating at the ends of int64.
func SumCosts(a, b int64) int64 { return algorithm.AddSaturating(a, b) }

// States name the states that a key has under the rule, one for each of Limits:
// the rule's name, the algorithm with its window period, and the ordinal among
// equals, joined by NUL bytes, none of which holds a NUL itself. Rules with the
// same name share what has the same name here.
func (r *Rule) States() []string {
	names := make([]string, len(r.compiled.Parts))
	for i := range r.compiled.Parts {
		names[i] = r.compiled.Parts[i].State
	}
	return names
}

// Kept is what an engine made of the rule when it saw it first, so that it is
// made once. A rule keeps one value: where engines of different types T ask by
// turns, each makes its own anew.
func Kept[T any](r *Rule, make func(*Rule) *T) *T {
	return rule.Keep(&r.compiled, func() *T { return make(r) })
}
