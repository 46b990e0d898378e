package weir

import (
	"fmt"
	"slices"

	"github.com/weirflow/weir/internal/compiled"
)

// Request asks for Cost units of Key under Rule. It is a plain value.
type Request struct {
	Rule *Rule
	Key  string // any bytes, up to MaxKey
	Cost int64  // 0 consumes nothing; a negative cost is an error
	// Colocation is another key beside which a cluster keeps this one, so that one call can decide both. On Redis it
	// is part of the place of the state, even without a cluster, so use the same Colocation in every call. Memory
	// ignores it.
	Colocation string
	// Otherwise is the request that is made in place of this one if this one is refused. Only an engine with a
	// [github.com/weirflow/weir/layer.Otherwise] makes it; all others refuse a request that has one.
	Otherwise *Request
}

// Colocate returns the request with a Colocation: login.For("alice", 1).Colocate("acme") keeps alice beside the key
// "acme".
func (q Request) Colocate(key string) Request {
	q.Colocation = key
	return q
}

// The names of operations in errors.
const (
	opTake         = compiled.OpTake
	opRenew        = "renew"
	opReserve      = "reserve"
	opReserveAhead = "reserve ahead"
	opPeek         = compiled.OpPeek
	opRecord       = compiled.OpRecord
	opReturn       = compiled.OpReturn
	opReset        = compiled.OpReset
	opEach         = "each"
	opSettle       = "settle"
	opCheck        = "check"
	opWait         = "wait"
)

// negative returns the error of a negative cost, which every call checks first.
func (q *Request) negative(op string) error {
	return &RequestError{Op: op, Rule: q.Rule.Name(), Field: "cost", Reason: fmt.Sprintf("%d is negative", q.Cost)}
}

// compiled converts the request to the form of engines.
func (q *Request) compiled(lease uint64) compiled.Request {
	return compiled.Request{Rule: Kit.Compiled(q.Rule), Key: q.Key, Colocation: q.Colocation, Cost: q.Cost, Lease: lease, Otherwise: q.Otherwise != nil}
}

// mergeRequests checks the requests of a call and merges requests with the same rule and key. It uses space if that
// is large enough.
func mergeRequests(op string, requests []Request, lease uint64, space []compiled.Request) ([]compiled.Request, error) {
	if problem := compiled.CheckCount(len(requests)); problem != nil {
		return nil, requestError(op, problem)
	}
	space = slices.Grow(space, len(requests))
	for i := range requests {
		space = append(space, requests[i].compiled(lease))
	}
	merged, problem := compiled.Merge(op, space)
	if problem != nil {
		return nil, requestError(op, problem)
	}
	return merged, nil
}

func requestError(op string, p *compiled.Problem) error {
	return &RequestError{Op: op, Rule: p.Rule, Field: p.Field, Reason: p.Reason}
}
