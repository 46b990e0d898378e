package weir

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/memory"
)

// Rule is a named set of limits. A key has to satisfy all of them. It is immutable. Two rules with the same name
// share their state on an engine, so that limits can differ by plan or change over time. State belongs to the rule's
// name, the algorithm, the window period, the ordinal among equal limits and the key, and not to rate and burst.
type Rule struct {
	limits   []Limit
	held     *Rule // the rule itself, one of a part of its limits, or nil
	spent    *Rule
	compiled compiled.Rule
}

// NewRule returns a rule of 1 to 16 limits. The name has 1 to 256 bytes, without '=' and NUL. A LeakyBucket, or a
// SlidingLog with CountDenied, stands alone; a Ban never does, and there is at most one. NewRule refuses Bursty and WarmUp, whose keys cannot be evicted. Errors
// are joined *LimitError values.
func NewRule(name string, limits ...Limit) (*Rule, error) {
	r := &Rule{limits: append([]Limit(nil), limits...)}
	r.compiled.Name = name
	problems := checkName(name)
	var texts []string
	if len(limits) == 0 || len(limits) > compiled.MaxLimits {
		problems = append(problems, ruleError(name, "limits", CodeLimitCount, fmt.Sprintf("are %d, not 1 to %d", len(limits), compiled.MaxLimits)))
	}
	for _, l := range limits {
		compiled, err := compile(l)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if refusal := refusalOf(l, compiled); refusal != nil {
			problems = append(problems, refusal)
		}
		if len(limits) > 1 && compiled.Solitary() {
			problems = append(problems, &LimitError{Limit: l.String(), Field: "rule", Code: CodeAlone, Reason: "cannot combine it with other limits"})
		}
		r.compiled.Add(compiled, identity(l))
		texts = append(texts, l.String())
	}
	if problem := checkBans(name, limits); problem != nil {
		problems = append(problems, problem)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	r.compiled.Text = strings.Join(texts, " and ")
	r.compiled.Home = new(memory.Homes)
	r.held, r.spent = r.part(true), r.part(false)
	return r, nil
}

func checkName(name string) []error {
	if !compiled.IsName(name) {
		return []error{ruleError(name, "name", CodeName, fmt.Sprintf("is not 1 to %d bytes without '=' and NUL", compiled.MaxName))}
	}
	return nil
}

func ruleError(name, field string, code Code, reason string) *LimitError {
	if len(name) > compiled.MaxName {
		name = name[:compiled.MaxName] + "…"
	}
	return &LimitError{Limit: fmt.Sprintf("rule %q", name), Field: field, Code: code, Reason: reason}
}

// inRule adds the rule's name to the errors of its limits.
func inRule(name string, err error) error {
	switch e := err.(type) {
	case *LimitError:
		if named := ruleError(name, e.Field, e.Code, e.Reason); e.Limit != named.Limit {
			named.Limit += ": " + e.Limit
			return named
		}
	case interface{ Unwrap() []error }:
		var problems []error
		for _, problem := range e.Unwrap() {
			problems = append(problems, inRule(name, problem))
		}
		return errors.Join(problems...)
	}
	return err
}

// Name returns the rule's name.
func (r *Rule) Name() string { return r.compiled.Name }

// Limits returns the rule's limits, in order, in a new slice.
func (r *Rule) Limits() []Limit { return append([]Limit(nil), r.limits...) }

// String prints the rule in the form that ParseRule reads: login=token bucket 5/m and fixed window 100/d. ParseRule
// drops white space around a name.
func (r *Rule) String() string { return r.compiled.Name + "=" + r.compiled.Text }

// MarshalText returns the text of String.
func (r *Rule) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// For returns a request for cost units of key under the rule.
func (r *Rule) For(key string, cost int64) Request { return Request{Rule: r, Key: key, Cost: cost} }

// Delays reports whether the rule admits with a delay, like a LeakyBucket.
func (r *Rule) Delays() bool { return r != nil && r.compiled.Delays() }

// part returns a rule of the limits that hold units, or of those that spend them. A Ban goes with those that spend, if there are
// some: it counts their refusals.
func (r *Rule) part(leases bool) *Rule {
	var limits []Limit
	for i, l := range r.limits {
		if p := &r.compiled.Parts[i]; p.Leases == leases && !p.Bans || p.Bans && leases == r.compiled.BansHeld() {
			limits = append(limits, l)
		}
	}
	switch len(limits) {
	case 0:
		return nil
	case len(r.limits):
		return r
	}
	part, _ := NewRule(r.Name(), limits...) // valid in r, so valid here
	return part
}

// ChargeAfter returns the rule for costs that are known only when the work is done. It shares all states with r.
//
// [Engine.Record] then counts the usage in any case. A [github.com/weirflow/weir/layer.Guard] keeps the record under any
// policy, and makes it when the engine is back, because work that was done cannot be refused. A
// [github.com/weirflow/weir/layer.Prefetch] takes nothing ahead under such a rule, so that the next caller sees the
// record.
//
// ChargeAfter refuses a Concurrency and a Ban with a *LimitError: a slot is held during the work, and a ban counts refusals of takes.
func (r *Rule) ChargeAfter() (*Rule, error) {
	if r.held != nil {
		return nil, ruleError(r.Name(), "charge", CodeHeld, "cannot be after the work, because "+r.held.compiled.Text+" holds slots during the work; give the slots a rule of their own")
	}
	if r.compiled.Bans {
		return nil, ruleError(r.Name(), "charge", CodeBan, "cannot be after the work beside a ban: what was used is recorded, and only a take that is refused counts")
	}
	made, err := NewRule(r.Name(), r.limits...)
	if err == nil {
		made.compiled.After = true
	}
	return made, err
}

// ChargesAfter reports whether ChargeAfter made the rule.
func (r *Rule) ChargesAfter() bool { return r != nil && r.compiled.After }
