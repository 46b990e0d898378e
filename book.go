package weir

import (
	"context"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
)

// AheadTaker is an optional interface of an Engine: it takes a request for a later instant. [Book] calls it.
type AheadTaker interface {
	// TakeAhead takes the request for the earliest instant at which every limit of its rule admits it, if that is at
	// most longest away. Otherwise it takes nothing, and RetryAfter of the refusal is the time after which the same
	// call is admitted. The limits have to be bookable, see [Rule.Bookable].
	//
	// The instant is Decision.Delay after the decision. It is never revoked: until then the engine admits nothing else
	// of the key, and later bookings get no earlier instant. So callers of all processes go in the order in which the
	// engine saw them.
	//
	// withdraw gives n units back. All units of the newest booking come back exactly. While a booked instant lies
	// ahead, units of any other booking come back behind it or, under a limit other than a TokenBucket, not at all.
	TakeAhead(ctx context.Context, longest time.Duration, request Request) (d Decision, withdraw func(ctx context.Context, n int64) error, err error)
}

const opBook = "book"

// Bookable reports whether an engine can book the rule for a later instant: whether all its limits are buckets, gates
// and cycles. Windows, logs and slots cannot promise when units become free.
func (r *Rule) Bookable() bool { return r != nil && r.compiled.Made() && r.compiled.Bookable() }

// Book reserves a request on e for the earliest instant at which it is admitted, if that is at most longest away. The
// caller goes ahead after Decision.Delay, counted from the reply. Cancel gives the units back if the work was not done:
// see [AheadTaker]. Only one rule and one key can be booked, and only if the rule is [Rule.Bookable] and e is an
// AheadTaker; otherwise the error is a *RequestError.
func Book(ctx context.Context, e Engine, longest time.Duration, request Request) (*Reservation, error) {
	a, ok := e.(AheadTaker)
	if !ok {
		return nil, &RequestError{Op: opBook, Field: "engine", Reason: "books nothing: it is no AheadTaker"}
	}
	d, withdraw, err := a.TakeAhead(ctx, max(longest, 0), request)
	if err != nil {
		return nil, err
	}
	h := newHolding(e, []Request{request})
	h.withdraw = withdraw
	if h.Decision = d; !d.Allowed {
		h.left = settled
	}
	return &h.Reservation, nil
}

// CheckBookable returns a *RequestError for a request that cannot be booked. An AheadTaker calls it.
func CheckBookable(q Request) error {
	switch {
	case q.Rule == nil || !q.Rule.compiled.Made():
		return &RequestError{Op: opBook, Field: "rule", Reason: "was not made by NewRule"}
	case !q.Rule.Bookable():
		return &RequestError{Op: opBook, Rule: q.Rule.Name(), Field: "rule", Reason: "cannot be booked ahead: a window, a log or slots cannot promise when units come free"}
	case q.Identity != "":
		return &RequestError{Op: opBook, Rule: q.Rule.Name(), Field: "identity", Reason: "is given, but no engine recognises a repeated booking"}
	}
	return nil
}

// TakeAhead takes a request for the earliest instant at which it is admitted. [Book] calls it.
func (m *Memory) TakeAhead(ctx context.Context, longest time.Duration, request Request) (Decision, func(context.Context, int64) error, error) {
	if err := CheckBookable(request); err != nil {
		return Decision{}, nil, err
	}
	merged, err := m.merge(ctx, opBook, []Request{request}, nil)
	if err != nil {
		return Decision{}, nil, err
	}
	answer, booked, err := m.engine.Book(merged, int64(longest))
	d, err := describe(opBook, merged, &answer, err)
	if err != nil {
		return Decision{}, nil, err
	}
	return d, func(ctx context.Context, n int64) error {
		if err := ctx.Err(); err != nil {
			return cannotDecide(opSettle, err)
		}
		_, err := describe(opSettle, merged, &algorithm.Answer{}, m.engine.Withdraw(merged, booked, n))
		return err
	}, nil
}
