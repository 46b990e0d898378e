// Package compiled has rules ready to decide, and the code that checks, merges and names the requests of a call.
// It uses no exported type of package weir; packages weir and enginekit translate.
package compiled

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Rule is a rule ready to decide. It is immutable.
type Rule struct {
	Name  string
	Text  string // the limits in the form that ParseRule reads
	Parts []Part
	// Home is the cache of the parts' states in memory engines. Only they know its type.
	Home any
	// After says that costs are known only after the work: see weir.Rule.ChargeAfter.
	After bool
	// Bans says that a part is a ban.
	Bans bool
	kept atomic.Pointer[kept]
}

// Part is one limit of a rule, ready to decide.
type Part struct {
	Algorithm algorithm.Algorithm
	Words     algorithm.Worder // the algorithm if its states fit in words, otherwise nil
	State     string           // the name of the limit's states: rule name, identity and ordinal
	Delays    bool             // it admits with a delay
	Leases    bool             // identities hold its units
	Endless   bool             // its units are held until they are released
	Bookable  bool             // its units can be reserved ahead
	Bans      bool             // it refuses because others have refused
	Alone     bool             // it cannot be decided together with others: it delays, or writes what it refuses
}

// NewPart returns a part whose states have the name.
func NewPart(a algorithm.Algorithm, state string) Part {
	p := Part{Algorithm: a, State: state}
	p.Words, _ = a.(algorithm.Worder)
	p.Delays, p.Leases, p.Endless = algorithm.Delays(a), algorithm.Leases(a), a.Endless()
	p.Bookable, p.Alone, p.Bans = algorithm.Bookable(a), a.Solitary(), algorithm.Bans(a)
	return p
}

// Add appends the part of a limit with an identity. Its states are named by the
// rule, the identity and the number of earlier limits with the same identity,
// joined by NUL bytes. Neither of the first two holds a NUL.
func (c *Rule) Add(a algorithm.Algorithm, identity string) {
	name := c.Name + "\x00" + identity + "\x00"
	ordinal := 0
	for i := range c.Parts {
		if _, ok := cutOrdinal(c.Parts[i].State, name); ok {
			ordinal++
		}
	}
	p := NewPart(a, name+strconv.Itoa(ordinal))
	c.Parts, c.Bans = append(c.Parts, p), c.Bans || p.Bans
}

// BansHeld reports whether a ban guards slots alone, which it then stays with where a rule is split.
func (c *Rule) BansHeld() bool {
	return !slices.ContainsFunc(c.Parts, func(p Part) bool { return !p.Leases && !p.Bans })
}

// cutOrdinal returns the rest of a state's name after name, if that is its ordinal.
func cutOrdinal(state, name string) (ordinal string, ok bool) {
	if len(state) <= len(name) || state[:len(name)] != name {
		return "", false
	}
	return state[len(name):], true
}

// Made reports whether the rule was made by NewRule.
func (c *Rule) Made() bool { return c != nil && len(c.Parts) > 0 }

// Delays reports whether the rule admits with a delay.
func (c *Rule) Delays() bool {
	return slices.ContainsFunc(c.Parts, func(p Part) bool { return p.Delays })
}

// Bookable reports whether all limits can be reserved ahead.
func (c *Rule) Bookable() bool {
	return !slices.ContainsFunc(c.Parts, func(p Part) bool { return !p.Bookable })
}

// Alone reports whether no other request can be combined with one under the rule.
func (c *Rule) Alone() bool { return c.Parts[0].Alone }

// kept is the values that a rule stores, one of each type.
type kept struct {
	value any
	next  *kept
}

// Keep returns the value of type *T that the rule stores, and makes it if there is none.
func Keep[T any](c *Rule, build func() *T) *T {
	for {
		first := c.kept.Load()
		for k := first; k != nil; k = k.next {
			if value, ok := k.value.(*T); ok {
				return value
			}
		}
		c.kept.CompareAndSwap(first, &kept{build(), first})
	}
}

// The names of operations in errors.
const (
	OpTake   = "take"
	OpPeek   = "peek"
	OpRecord = "record"
	OpReturn = "return"
	OpReset  = "reset"
)

// The bounds of a call. Package weir documents them.
const (
	MaxKey      = table.MaxKey // bytes of a key
	MaxRequests = 128          // requests in one call
	MaxLinks    = 4            // requests that may be made in place of one, each if the one before is refused
)

// Request asks for Cost units of Key under a rule: a weir.Request whose rule is
// compiled.
type Request struct {
	Rule       *Rule // nil if the caller gave none
	Key        string
	Colocation string
	Cost       int64
	Lease      uint64
	Spared     bool  // its refusal is no strike: its caller waits
	Otherwise  bool  // the caller gave a request to make in its place
	Taken      int64 // when an undo's units were taken; a take with a lease sets it
}

// Problem is the reason no engine can decide a request: a weir.RequestError without its operation.
type Problem struct {
	Rule   string // empty if the request has no rule
	Field  string
	Reason string
}

// CheckCount refuses a call without requests, or with too many.
func CheckCount(requests int) *Problem {
	if requests == 0 || requests > MaxRequests {
		return &Problem{Field: "requests", Reason: fmt.Sprintf("are %d, not 1 to %d", requests, MaxRequests)}
	}
	return nil
}

// CheckResults refuses a call whose results differ in number from its requests.
func CheckResults(requests, results int) *Problem {
	if results != requests {
		return &Problem{Field: "results", Reason: fmt.Sprintf("are %d for %d requests", results, requests)}
	}
	return nil
}

// CheckMost refuses to take requests a negative number of times.
func CheckMost(most int64) *Problem {
	if most < 0 {
		return &Problem{Field: "most", Reason: fmt.Sprintf("%d is negative", most)}
	}
	return nil
}

// CheckMade refuses a rule that NewRule did not make, the i-th of n.
func (c *Rule) CheckMade(i, n int) *Problem {
	if !c.Made() {
		return &Problem{Field: "rule", Reason: fmt.Sprintf("%d of %d was not made by NewRule", i+1, n)}
	}
	return nil
}

// Merge checks the requests of a call and sums the costs of requests with the same rule and key into the first of
// them. The caller has called CheckCount. The result uses the space of requests.
func Merge(op string, requests []Request) ([]Request, *Problem) {
	n := 0
	for i := range requests {
		if problem := requests[i].Check(op); problem != nil {
			return nil, problem
		}
	}
	for i := range requests {
		q := &requests[i]
		if len(requests) > 1 && op != OpReset && q.Rule.Alone() {
			return nil, q.problem("rule", "cannot be decided together with others: it delays, or counts denied attempts")
		}
		same := sameState(requests[:n], q)
		if same == nil {
			if n < i {
				requests[n] = *q
			}
			n++
			continue
		}
		if problem := q.differsFrom(same); problem != nil {
			return nil, problem
		}
		same.Cost = algorithm.AddSaturating(same.Cost, q.Cost)
	}
	return requests[:n], nil
}

// Check refuses a request that is invalid on its own.
func (q *Request) Check(op string) *Problem {
	switch {
	case !q.Rule.Made():
		return &Problem{Field: "rule", Reason: "was not made by NewRule"}
	case q.Cost < 0 && op == OpRecord:
		return q.problem("cost", fmt.Sprintf("%d is negative: Return gives units back", q.Cost))
	case q.Cost < 0 && op != OpReset:
		return q.problem("cost", fmt.Sprintf("%d is negative", q.Cost))
	case len(q.Key) > MaxKey || len(q.Colocation) > MaxKey:
		return q.problem("key", fmt.Sprintf("of %d bytes is longer than %d", max(len(q.Key), len(q.Colocation)), MaxKey))
	case q.Otherwise:
		return q.problem("otherwise", "is given, but this engine makes no request in place of another: put a layer.Otherwise over it")
	}
	return nil
}

// TakesOne reports quickly whether a take of one request is valid. Otherwise Check returns the problem.
func (c *Rule) TakesOne(key, colocation string, cost int64) bool {
	return c.Made() && len(key) <= MaxKey && len(colocation) <= MaxKey && cost >= 0
}

// sameState returns the request with the rule's name and the key of q, or nil. Keys of a call mostly differ at their ends.
func sameState(requests []Request, q *Request) *Request {
	end := len(q.Key) - 1
	for i := range requests {
		if r := &requests[i]; len(r.Key) == len(q.Key) && (end < 0 || r.Key[end] == q.Key[end]) && r.Key == q.Key && r.Rule.Name == q.Rule.Name {
			return r
		}
	}
	return nil
}

// differsFrom refuses q beside a request for the same state with other limits.
func (q *Request) differsFrom(same *Request) *Problem {
	if same.Rule != q.Rule && same.Rule.Text != q.Rule.Text {
		return q.problem("rule", fmt.Sprintf("has different limits for one key: %s and %s", same.Rule.Text, q.Rule.Text))
	}
	return nil
}

func (q *Request) problem(field, reason string) *Problem {
	return &Problem{Rule: q.Rule.Name, Field: field, Reason: reason}
}
