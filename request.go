package weir

import (
	"fmt"
	"math"
)

// Request asks for Cost units of Key under Rule. It is a plain value.
type Request struct {
	Rule *Rule
	Key  string // any bytes, to MaxKey of them
	Cost int64  // 0 asks without taking; negative only for Record
	// Place keeps this key beside another in a cluster, so that one call can
	// decide both. On Redis, also without a cluster, it is part of where the
	// state lives: give the same Place in every call. Memory ignores it.
	Place string
	// Lease is the identity that units of a Concurrency are held by, and the
	// one that a Record of a negative cost releases. 0 is none: whoever takes
	// without one releases whatever was taken without one. Reserve draws one.
	// Other limits ignore it.
	Lease uint64
}

// In says which key's place in a cluster this one shares:
// login.For("alice", 1).In("acme") lives beside key "acme".
func (q Request) In(place string) Request {
	q.Place = place
	return q
}

// The operations, as errors name them.
const (
	opTake    = "take"
	opReserve = "reserve"
	opPeek    = "peek"
	opRecord  = "record"
	opReset   = "reset"
	opSettle  = "settle"
	opCheck   = "check"
	opWait    = "wait"
)

// checkRequests refuses what no engine could decide.
func checkRequests(op string, requests []Request) error {
	if len(requests) == 0 || len(requests) > MaxRequests {
		return &RequestError{Op: op, Field: "requests", Reason: fmt.Sprintf("are %d, not 1 to %d", len(requests), MaxRequests)}
	}
	for i := range requests {
		if err := requests[i].check(op); err != nil {
			return err
		}
		if len(requests) > 1 {
			if err := checkTogether(op, requests[:i], &requests[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// check refuses a request that is wrong by itself.
func (q *Request) check(op string) error {
	if q.Rule == nil || len(q.Rule.parts) == 0 {
		return &RequestError{Op: op, Field: "rule", Reason: "was not made by NewRule"}
	}
	if len(q.Key) > MaxKey || len(q.Place) > MaxKey {
		return &RequestError{Op: op, Rule: q.Rule.name, Field: "key", Reason: fmt.Sprintf("of %d bytes is longer than %d", max(len(q.Key), len(q.Place)), MaxKey)}
	}
	if q.Cost < 0 && op != opRecord && op != opReset {
		return &RequestError{Op: op, Rule: q.Rule.name, Field: "cost", Reason: fmt.Sprintf("%d is negative", q.Cost)}
	}
	return nil
}

// checkTogether refuses a request that cannot be decided with the ones before.
func checkTogether(op string, before []Request, q *Request) error {
	if op != opReset && q.Rule.parts[0].algorithm.Solitary() {
		return &RequestError{Op: op, Rule: q.Rule.name, Field: "rule", Reason: "cannot be decided together with others: it delays, or counts denied attempts"}
	}
	for i := range before {
		b := &before[i]
		if b.Rule != q.Rule && b.Rule.name == q.Rule.name && b.Key == q.Key && b.Rule.String() != q.Rule.String() {
			return &RequestError{Op: op, Rule: q.Rule.name, Field: "rule", Reason: fmt.Sprintf("has different limits for one key: %s and %s", limitsText(b.Rule.limits), limitsText(q.Rule.limits))}
		}
		if b.Lease != q.Lease && b.Rule.name == q.Rule.name && b.Key == q.Key {
			return &RequestError{Op: op, Rule: q.Rule.name, Field: "lease", Reason: fmt.Sprintf("%d and %d are of one key", b.Lease, q.Lease)}
		}
	}
	return nil
}

// sameState is the first of the requests with the rule, key and place of q; -1
// if there is none.
func sameState(requests []Request, q *Request) int {
	for i := range requests {
		if r := &requests[i]; r.Key == q.Key && r.Rule.name == q.Rule.name {
			return i
		}
	}
	return -1
}

func saturatingAdd(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}
