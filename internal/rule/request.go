package rule

import (
	"fmt"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

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
)

// Request asks for Cost units of Key under a rule: a weir.Request whose rule is
// compiled.
type Request struct {
	Rule       *Compiled // nil if the caller gave none
	Key        string
	Colocation string
	Cost       int64
	Lease      uint64
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
func (c *Compiled) CheckMade(i, n int) *Problem {
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
		q := &requests[i]
		if problem := q.Check(op); problem != nil {
			return nil, problem
		}
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
	case len(q.Key) > MaxKey || len(q.Colocation) > MaxKey:
		return q.problem("key", fmt.Sprintf("of %d bytes is longer than %d", max(len(q.Key), len(q.Colocation)), MaxKey))
	case q.Cost < 0 && op == OpRecord:
		return q.problem("cost", fmt.Sprintf("%d is negative: Return gives units back", q.Cost))
	case q.Cost < 0 && op != OpReset:
		return q.problem("cost", fmt.Sprintf("%d is negative", q.Cost))
	}
	return nil
}

// TakesOne reports quickly whether a take of one request is valid. Otherwise Check returns the problem.
func (c *Compiled) TakesOne(key, colocation string, cost int64) bool {
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
