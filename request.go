package weir

import "github.com/weirflow/weir/internal/rule"

// Request asks for Cost units of Key under Rule. It is a plain value.
type Request struct {
	Rule *Rule
	Key  string // any bytes, to MaxKey of them
	Cost int64  // 0 asks without taking; negative only for Record
	// Colocation is another key beside which a cluster keeps this one, so that
	// one call can decide both. On Redis it is part of where the state lives,
	// also without a cluster: give the same Colocation in every call. Memory
	// ignores it.
	Colocation string
	// Lease is the identity that units of a Concurrency are held by, and the
	// one that a Record of a negative cost releases. 0 is none: whoever takes
	// without one releases whatever was taken without one. Reserve draws one.
	// Other limits ignore it.
	Lease uint64
}

// Colocate returns the request with a Colocation:
// login.For("alice", 1).Colocate("acme") keeps alice beside key "acme".
func (q Request) Colocate(key string) Request {
	q.Colocation = key
	return q
}

// The operations, as errors name them.
const (
	opTake    = rule.OpTake
	opReserve = "reserve"
	opPeek    = rule.OpPeek
	opRecord  = rule.OpRecord
	opReset   = rule.OpReset
	opSettle  = "settle"
	opCheck   = "check"
	opWait    = "wait"
)

// compiled is the request as engines know it.
func (q *Request) compiled() rule.Request {
	return rule.Request{Rule: q.Rule.maybeCompiled(), Key: q.Key, Colocation: q.Colocation, Cost: q.Cost, Lease: q.Lease}
}

// mergeRequests checks the requests of a call and merges those of one rule and
// key. It uses the space if that is large enough.
func mergeRequests(op string, requests []Request, space []rule.Request) ([]rule.Request, error) {
	if problem := rule.CheckCount(len(requests)); problem != nil {
		return nil, requestError(op, problem)
	}
	for i := range requests {
		space = append(space, requests[i].compiled())
	}
	merged, problem := rule.Merge(op, space)
	if problem != nil {
		return nil, requestError(op, problem)
	}
	return merged, nil
}

func requestError(op string, p *rule.Problem) error {
	return &RequestError{Op: op, Rule: p.Rule, Field: p.Field, Reason: p.Reason}
}
