package weir

import (
	"context"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
)

// Bookable reports whether an engine can reserve ahead under the rule: whether all its limits are buckets, gates
// and cycles. Windows, logs and slots cannot promise when units become free.
func (r *Rule) Bookable() bool { return r != nil && r.compiled.Made() && r.compiled.Bookable() }

// ReserveAhead reserves a request on e for the earliest instant at which every limit of its rule admits it, if that is at
// most longest away. Otherwise it takes nothing, and RetryAfter of the refusal is the time after which the same call is
// admitted. The rule has to be [Rule.Bookable].
//
// The instant is Decision.Delay after the decision. It is never revoked: until then the engine admits nothing else of the
// key, and later reservations get no earlier instant. So callers of all processes go in the order in which the engine saw
// them. Cancel gives the units back if the work was not done. Those of the newest reservation come back exactly. While a
// reserved instant lies ahead, units of any other reservation come back behind it or, under a limit other than a
// TokenBucket, not at all.
func ReserveAhead(ctx context.Context, e Engine, longest time.Duration, request Request) (*Reservation, error) {
	a, err := e.Do(ctx, Call{Op: OpReserveAhead, Longest: max(longest, 0), Requests: []Request{request}})
	return a.Reservation, err
}

// CheckAhead returns a *RequestError for an OpReserveAhead that no engine can make. An Engine calls it.
func CheckAhead(c Call) error {
	if len(c.Requests) != 1 {
		return &RequestError{Op: opReserveAhead, Field: "requests", Reason: "are not one"}
	}
	switch q := &c.Requests[0]; {
	case q.Rule == nil || !q.Rule.compiled.Made():
		return &RequestError{Op: opReserveAhead, Field: "rule", Reason: "was not made by NewRule"}
	case !q.Rule.Bookable():
		return &RequestError{Op: opReserveAhead, Rule: q.Rule.Name(), Field: "rule", Reason: "cannot be reserved ahead: a window, a log or slots cannot promise when units come free"}
	case c.Identity != "":
		return &RequestError{Op: opReserveAhead, Rule: q.Rule.Name(), Field: "identity", Reason: "is given, but no engine recognises a repeated reservation"}
	}
	return nil
}

// reserveAhead makes an OpReserveAhead.
func (m *Memory) reserveAhead(ctx context.Context, c Call) (Answer, error) {
	if err := CheckAhead(c); err != nil {
		return Answer{}, err
	}
	merged, err := m.merge(ctx, opReserveAhead, c.Requests, 0, nil)
	if err != nil {
		return Answer{}, err
	}
	answer, booked, err := m.engine.Book(merged, int64(max(c.Longest, 0)))
	d, err := describe(opReserveAhead, merged, &answer, err)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Decision: d, Reservation: Granted(m, time.Time{}, d, func(ctx context.Context, n int64) error {
		if err := ctx.Err(); err != nil {
			return cannotDecide(opSettle, err)
		}
		_, err := describe(opSettle, merged, &algorithm.Answer{}, m.engine.Withdraw(merged, booked, n))
		return err
	}, c)}, nil
}
