package weir

import (
	"context"
	"time"
)

// Engine keeps the state of keys and decides. It is the boundary between callers (servers, middleware) and storage
// (memory, Redis).
//
// The requests of one call are admitted all or none: if one is refused, nothing is written. Requests with the same
// rule and key count as one request with the sum of their costs. A refusal is a Decision. An error means that the
// engine could not decide and admitted nothing; [WasCounted] reports whether it counted the cost nevertheless. The
// engine checks requests before it writes; an invalid request is a [*RequestError].
//
// A [LeakyBucket], or a [SlidingLog] that counts denied attempts, stands alone: beside another limit in one call it
// is a [*RequestError].
//
// Methods do not keep the slices that they receive. All methods are safe for concurrent use. [Wrap] puts a function
// around each call of an engine, and [Find] finds an engine's optional abilities through such functions. Package
// enginekit helps to write an engine, and package limittest tests one.
type Engine interface {
	// Do makes one call. The other methods are short forms of it for calls without further terms. An engine that does not
	// support the operation returns an error that is errors.ErrUnsupported.
	Do(ctx context.Context, call Call) (Answer, error)

	// Take admits the cost of all requests now, or none.
	Take(ctx context.Context, requests ...Request) (Decision, error)

	// Each makes each call on its own, in order, and writes the answer to calls[i] into results[i]. A call may take,
	// reserve ahead, peek, record or return. An invalid call affects only its own result. The returned error concerns all calls, for example slices
	// of different lengths; then nothing was decided.
	Each(ctx context.Context, calls []Call, results []Result) error

	// Reserve takes the requests and returns a reservation, to settle once the true cost is known. The reservation of
	// a refusal settles nothing. It is nil only with an error, and a nil reservation may be cancelled.
	Reserve(ctx context.Context, requests ...Request) (*Reservation, error)

	// Peek returns the answer that Take would give, without writing anything.
	Peek(ctx context.Context, requests ...Request) (Decision, error)

	// Record counts the cost even if it does not fit. Allowed reports whether all of it fitted.
	Record(ctx context.Context, requests ...Request) (Decision, error)

	// Return gives units back that were taken or recorded and not used. A key never gets better than fresh.
	Return(ctx context.Context, requests ...Request) (Decision, error)

	// Reset clears the requests' keys under their rules. It ignores costs.
	Reset(ctx context.Context, requests ...Request) error

	// Check returns the limits of the rules that the engine cannot hold, as joined [*LimitError] values, or nil.
	Check(rules ...*Rule) error
}

// SlotKeeper is an optional ability of an Engine whose [Concurrency] slots expire unless their holder renews them. A
// [Reservation] calls KeepSlots with the slots that were taken at an instant after since, and with their Lease. The
// engine then renews them until release is called. It closes lost as soon as a slot has expired, or may have.
type SlotKeeper interface {
	KeepSlots(since time.Time, slots Call) (lost <-chan struct{}, release func())
}
