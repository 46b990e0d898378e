// Package enginekit has everything that a weir.Engine needs, in any package.
//
// An engine stores the states of keys. [New] makes an engine of one function: it
// gets a [Call] whose requests are checked and merged, loads the State of each
// [Part], calls [Call.Decide], and stores the states that changed. The example is
// a whole engine over a map and a mutex; docs/engines.md walks through it.
//
// An engine that decides elsewhere, as in a script of a database, needs other
// pieces. [Merge] checks and merges requests. [Keep] keeps what the engine makes
// of a rule. [FunctionsOf] evaluates a stored state in the engine's own unit of
// time. [Compose] makes an answer of what was measured of each part. [Check] and
// [CheckEach] are the checks of two other methods, and [weir.Reserve] is a third.
//
// Package limittest proves that an engine decides as package weir documents.
package enginekit

import (
	"errors"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/rule"
)

// Op is what a call asks of its engine.
type Op string

// The operations of an engine.
const (
	Take   Op = rule.OpTake
	Peek   Op = rule.OpPeek
	Record Op = rule.OpRecord
	Reset  Op = rule.OpReset
)

// CannotDecide wraps the reason why an engine could not decide. It is for calls
// that certainly counted nothing: see [weir.MayHaveCounted].
func CannotDecide(op Op, err error) error { return rule.CannotDecide(string(op), err) }

// Merge checks the requests of a call and sums the costs of requests with the
// same rule and key into the first of them. It returns the requests themselves
// if there is nothing to sum. The error is a *weir.RequestError. Every engine
// calls Merge, or NewCall, before it writes anything.
func Merge(op Op, requests []weir.Request) ([]weir.Request, error) {
	if problem := rule.CheckCount(len(requests)); problem != nil {
		return nil, requestError(op, problem)
	}
	var space [4]rule.Request
	compiled := space[:0]
	for i := range requests {
		q := &requests[i]
		compiled = append(compiled, rule.Request{Rule: rule.Of(q.Rule), Key: q.Key, Colocation: q.Colocation, Cost: q.Cost, Lease: q.Lease})
	}
	merged, problem := rule.Merge(string(op), compiled)
	switch {
	case problem != nil:
		return nil, requestError(op, problem)
	case len(merged) == len(requests):
		return requests, nil
	}
	return firstOf(merged, requests), nil
}

// firstOf returns the first request of each merged one, with the cost of that.
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

func requestError(op Op, p *rule.Problem) error {
	return &weir.RequestError{Op: string(op), Rule: p.Rule, Field: p.Field, Reason: p.Reason}
}

// Keep returns what an engine made of a rule when it first saw it, and calls make
// if there is nothing. A rule keeps one value: where engines of different types T
// ask in turn, each makes its own anew.
func Keep[T any](r *weir.Rule, make func(*weir.Rule) *T) *T {
	return rule.Keep(rule.Of(r), func() *T { return make(r) })
}

// StateNames names the states that a key has under a rule, one for each of
// Limits: the rule's name, the limit's kind with its period, and the ordinal
// among equals, joined by NUL bytes. None of the three holds a NUL. Rules of one
// name share the states whose names are equal.
func StateNames(r *weir.Rule) []string {
	parts := rule.Of(r).Parts
	names := make([]string, len(parts))
	for i := range parts {
		names[i] = parts[i].State
	}
	return names
}

// Check returns the Check of an engine. It refuses rules that NewRule did not make,
// and returns what holds reports of the others; a nil holds accepts all.
func Check(rules []*weir.Rule, holds func(*weir.Rule) error) error {
	var problems []error
	for i, r := range rules {
		if problem := rule.Of(r).CheckMade(i, len(rules)); problem != nil {
			problems = append(problems, requestError("check", problem))
		} else if holds != nil {
			problems = append(problems, holds(r))
		}
	}
	return errors.Join(problems...)
}

// CheckEach refuses a TakeEach whose slices differ in length.
func CheckEach(requests []weir.Request, results []weir.Result) error {
	if problem := rule.CheckResults(len(requests), len(results)); problem != nil {
		return requestError(Take, problem)
	}
	return nil
}
