// Package enginekit helps to write a weir.Engine in any package.
//
// An engine stores the states of keys. [New] makes an engine from one function. The function gets a [Call] whose
// requests are checked and merged, loads the State of each [Part], calls [Call.Decide], and stores the states that
// changed. The example is a complete engine over a map and a mutex; docs/howto/engines.md explains it.
//
// [NewStore] makes an engine over a database that compares and swaps: a [Store]. It shares calls between callers, repeats
// swaps that fail, and says of each failure whether it was counted.
//
// An engine that decides elsewhere, for example in a database script, uses other functions. [Merge] checks and merges
// requests. [Keep] caches what the engine computes from a rule. [FunctionsOf] evaluates a stored state in the
// engine's unit of time. [Compose] makes a Decision from measurements of each part. [Check], [CheckMost], [CheckTaken],
// [CheckEach] and [CheckAhead] implement checks of other calls, and [Reserve] implements a reservation. [EngineOf] makes an
// engine of one function.
//
// Fronts, which ask engines for others, hold slots and costs that are settled later: [Held], [Spent], [NewLease], [TakeOf],
// [HandOver] and [Granted] are for them.
//
// Package limittest tests that an engine decides as package weir documents.
package enginekit

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/rule"
)

// CannotDecide wraps the reason an engine could not decide. Use it for calls that certainly counted nothing: see
// [weir.WasCounted].
func CannotDecide(op weir.Op, err error) error { return rule.CannotDecide(op.String(), err) }

// Merge checks the requests of a call and sums the costs of requests with the same rule and key into the first of
// them. It returns requests itself if there is nothing to sum. The error is a *weir.RequestError. Every engine calls
// Merge or NewCall before it writes anything.
func Merge(op weir.Op, requests []weir.Request) ([]weir.Request, error) {
	if problem := rule.CheckCount(len(requests)); problem != nil {
		return nil, requestError(op, problem)
	}
	if q := &requests[0]; len(requests) == 1 && rule.Of(q.Rule).TakesOne(q.Key, q.Colocation, q.Cost) {
		return requests, nil
	}
	var space [4]rule.Request
	compiled := space[:0]
	for i := range requests {
		q := &requests[i]
		compiled = append(compiled, rule.Request{Rule: rule.Of(q.Rule), Key: q.Key, Colocation: q.Colocation, Cost: q.Cost})
	}
	merged, problem := rule.Merge(op.String(), compiled)
	switch {
	case problem != nil:
		return nil, requestError(op, problem)
	case len(merged) == len(requests):
		return requests, nil
	}
	return firstOf(merged, requests), nil
}

// firstOf returns the first request of each merged one, with the merged cost.
func firstOf(merged []rule.Request, requests []weir.Request) []weir.Request {
	first := make([]weir.Request, 0, len(merged))
	for _, q := range requests {
		if len(first) == len(merged) {
			break
		}
		if next := &merged[len(first)]; next.Key == q.Key && next.Rule == rule.Of(q.Rule) {
			q.Cost = next.Cost
			first = append(first, q)
		}
	}
	return first
}

func requestError(op weir.Op, p *rule.Problem) error {
	return &weir.RequestError{Op: op.String(), Rule: p.Rule, Field: p.Field, Reason: p.Reason}
}

// Keep returns the value that an engine stored with a rule, and calls build if there is none. A rule stores one value of
// each type T.
func Keep[T any](r *weir.Rule, build func(*weir.Rule) *T) *T {
	return rule.Keep(rule.Of(r), func() *T { return build(r) })
}

// StateNames returns the names of a key's states under a rule, one for each of Limits. A name joins the rule's name,
// the limit's kind with its period, and the ordinal among equal limits with NUL bytes, which none of the three
// contains. Rules with the same name share the states with equal names.
func StateNames(r *weir.Rule) []string {
	parts := rule.Of(r).Parts
	names := make([]string, len(parts))
	for i := range parts {
		names[i] = parts[i].State
	}
	return names
}
