package weir

import "github.com/weirflow/weir/internal/rule"

// Request asks for Cost units of Key under Rule. It is a plain value.
type Request struct {
	Rule *Rule
	Key  string // any bytes, up to MaxKey
	Cost int64  // 0 consumes nothing; only Record takes a negative cost
	// Colocation is another key beside which a cluster keeps this one, so that one call can decide both. On Redis it
	// is part of the place of the state, even without a cluster, so use the same Colocation in every call. Memory
	// ignores it.
	Colocation string
	// Lease is the identity that holds units of a Concurrency. A Record of a negative cost releases the units of its
	// identity. 0 means none: units taken without an identity are released without one. Reserve chooses a random
	// identity. Other limits ignore it.
	Lease uint64
	// Identity names the decision of the call, so that it can be repeated: an engine that recognises identities gives
	// a repeated decision its first answer, for a minute, and does not count it again. So a Take whose reply was lost
	// can be asked again. Use a new identity for each decision, such as a random one, of at most MaxIdentity bytes.
	// All requests of a call have the same or none. Redis recognises identities. Memory refuses them, because it
	// loses no reply.
	Identity string
}

// Colocate returns the request with a Colocation: login.For("alice", 1).Colocate("acme") keeps alice beside the key
// "acme".
func (q Request) Colocate(key string) Request {
	q.Colocation = key
	return q
}

// Identify returns the request with an Identity.
func (q Request) Identify(identity string) Request {
	q.Identity = identity
	return q
}

// MaxIdentity bounds the bytes of a Request.Identity.
const MaxIdentity = 128

// The names of operations in errors.
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

// compiled converts the request to the form of engines.
func (q *Request) compiled() rule.Request {
	return rule.Request{Rule: q.Rule.maybeCompiled(), Key: q.Key, Colocation: q.Colocation, Cost: q.Cost, Lease: q.Lease}
}

// mergeRequests checks the requests of a call and merges requests with the same rule and key. It uses space if that
// is large enough.
func mergeRequests(op string, requests []Request, space []rule.Request) ([]rule.Request, error) {
	if problem := rule.CheckCount(len(requests)); problem != nil {
		return nil, requestError(op, problem)
	}
	for i := range requests {
		if requests[i].Identity != "" {
			return nil, &RequestError{Op: op, Field: "identity", Reason: "is given, but this engine recognises no repeated decision; it loses no reply either"}
		}
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
