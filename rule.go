package weir

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
)

// Rule is a named set of limits that each key has to satisfy, all or nothing.
// It never changes after it is made. Two rules of one name share their state
// on an engine, so that limits can differ by plan or change over time: state
// belongs to the rule's name, the algorithm, the window period, the ordinal
// among equals and the key, and not to rate and burst.
type Rule struct {
	name   string
	limits []Limit
	parts  []part
	kept   keptValue
}

// part is one limit of a rule, ready to decide.
type part struct {
	algorithm algorithm.Algorithm
	state     string // rule name, identity and ordinal: names the state of the limit

	endless bool // units are held until they are given back, however long

	words algorithm.Worder           // the algorithm, if its states fit words
	table atomic.Pointer[limitTable] // where the memory engine that asked last keeps them
}

// NewRule makes a rule of 1 to 16 limits. The name is 1 to 256 bytes without '='
// and NUL. A LeakyBucket, or a SlidingLog with CountDenied, stands alone;
// Bursty and WarmUp are refused, since their keys cannot be forgotten.
// Errors are *LimitError values joined.
func NewRule(name string, limits ...Limit) (*Rule, error) {
	rule := &Rule{name: name, limits: append([]Limit(nil), limits...)}
	problems := checkName(name)
	if len(limits) == 0 || len(limits) > maxLimits {
		problems = append(problems, ruleError(name, "limits", CodeLimitCount, fmt.Sprintf("are %d, not 1 to %d", len(limits), maxLimits)))
	}
	rule.parts = make([]part, 0, len(limits))
	ordinals := map[string]int{}
	for _, l := range limits {
		compiled, err := compile(l)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if refusal := l.kind().refusal(l); refusal != nil {
			problems = append(problems, refusal)
		}
		if len(limits) > 1 && compiled.Solitary() {
			problems = append(problems, &LimitError{Limit: l.String(), Field: "rule", Code: CodeAlone, Reason: "cannot combine it with other limits"})
		}
		identity := identity(l)
		state := strings.Join([]string{name, identity, strconv.Itoa(ordinals[identity])}, "\x00")
		ordinals[identity]++
		rule.parts = rule.parts[:len(rule.parts)+1]
		p := &rule.parts[len(rule.parts)-1]
		p.algorithm, p.state, p.endless = compiled, state, endless(compiled)
		p.words, _ = compiled.(algorithm.Worder)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return rule, nil
}

const (
	maxLimits = 16
	maxName   = 256
)

func checkName(name string) []error {
	if name == "" || len(name) > maxName || strings.ContainsAny(name, "=\x00") {
		return []error{ruleError(name, "name", CodeName, fmt.Sprintf("is not 1 to %d bytes without '=' and NUL", maxName))}
	}
	return nil
}

func ruleError(name, field string, code Code, reason string) *LimitError {
	if len(name) > maxName {
		name = name[:maxName] + "…"
	}
	return &LimitError{Limit: fmt.Sprintf("rule %q", name), Field: field, Code: code, Reason: reason}
}

// inRule names the rule in the errors of its limits.
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

// Name is the rule's name.
func (r *Rule) Name() string { return r.name }

// Limits are the rule's limits, in order. The slice is the caller's.
func (r *Rule) Limits() []Limit { return append([]Limit(nil), r.limits...) }

// String prints the rule as ParseRule reads it:
// login=token bucket 5/m and fixed window 100/d. White space around a name is
// not read back.
func (r *Rule) String() string { return r.name + "=" + limitsText(r.limits) }

// MarshalText is String.
func (r *Rule) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// For is a request to spend cost units of key under the rule.
func (r *Rule) For(key string, cost int64) Request {
	return Request{Rule: r, Key: key, Cost: cost}
}

// delays says that the rule admits with a delay.
func (r *Rule) delays() bool {
	return slices.ContainsFunc(r.limits, func(l Limit) bool { return l.kind().delays == yes })
}

// leases says that the rule holds units by leases with an identity.
func (r *Rule) leases() bool { return slices.ContainsFunc(r.limits, isLeased) }

func isLeased(l Limit) bool { return l.kind().leases == yes }

// slots is the rule of those limits of r alone whose units have an identity. It
// shares their states with r, as it has its name. It is nil if there are none.
func (r *Rule) slots() *Rule {
	if r == nil || !r.leases() {
		return nil
	}
	limits := slices.DeleteFunc(r.Limits(), func(l Limit) bool { return !isLeased(l) })
	if len(limits) == len(r.limits) {
		return r
	}
	slots, _ := NewRule(r.name, limits...) // what r holds can be held
	return slots
}
