package weir

import (
	"context"
	"time"

	"github.com/weirflow/weir/internal/rule"
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
// Methods do not keep the slices that they receive. All methods are safe for concurrent use. Package enginekit helps to
// write an engine, and package limittest tests one.
type Engine interface {
	// Take admits the cost of all requests now, or none.
	Take(ctx context.Context, requests ...Request) (Decision, error)

	// TakeEach decides each request on its own, in order, and writes the answer to requests[i] into results[i]. An
	// invalid request affects only its own result. The returned error concerns the whole call, for example slices of
	// different lengths; then nothing was decided.
	TakeEach(ctx context.Context, requests []Request, results []Result) error

	// Reserve takes the requests and returns a reservation, to settle once the true cost is known. The reservation of
	// a refusal settles nothing. It is nil only with an error, and a nil reservation may be cancelled. An engine
	// implements Reserve with the function [Reserve].
	Reserve(ctx context.Context, requests ...Request) (*Reservation, error)

	// Peek returns the answer that Take would give, without writing anything.
	Peek(ctx context.Context, requests ...Request) (Decision, error)

	// Record counts the cost even if it does not fit. Allowed reports whether all of it fitted. A negative cost gives
	// units back; a key never gets better than fresh.
	Record(ctx context.Context, requests ...Request) (Decision, error)

	// Reset clears the requests' keys under their rules. It ignores costs.
	Reset(ctx context.Context, requests ...Request) error

	// Check returns the limits of the rules that the engine cannot hold, as joined [*LimitError] values, or nil.
	Check(rules ...*Rule) error
}

// Result is one answer of [Engine.TakeEach].
type Result struct {
	Decision Decision
	Err      error
}

// WithinTaker is an optional interface of an Engine: a Take with a time limit instead of a context, for hot paths.
type WithinTaker interface {
	TakeWithin(d time.Duration, requests ...Request) (Decision, error)
}

// TakeWithin takes the requests with at most d to decide: with the engine's [WithinTaker], or with Take and a context.
func TakeWithin(e Engine, d time.Duration, requests ...Request) (Decision, error) {
	if w, ok := e.(WithinTaker); ok {
		return w.TakeWithin(d, requests...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return e.Take(ctx, requests...)
}

// Holder is an optional interface of an Engine on which the slots of a [Concurrency] expire unless their holder renews
// them. [Reserve] calls Hold with the slots that it took at an instant after since. The engine then renews them until
// release is called. It closes lost as soon as a slot has expired, or may have. Drop releases slots whose take failed
// and may have been counted. It does not wait for that.
type Holder interface {
	Hold(since time.Time, slots ...Request) (lost <-chan struct{}, release func())
	Drop(slots ...Request)
}

// UpToTaker is an optional interface of an Engine: it takes requests as many times as they fit, in one decision.
// TakeUpTo takes each request the same number of times, up to most, so that a request of cost 1 takes that many
// units. It returns that number; 0 is a refusal, and the Decision is that of the requests taken once.
type UpToTaker interface {
	TakeUpTo(ctx context.Context, most int64, requests ...Request) (times int64, d Decision, err error)
}

// TakeUpTo takes the requests as many times as they fit, up to most. It calls the engine's [UpToTaker]. For other
// engines it peeks, takes what should fit, and tries again if another caller was faster; the fourth time it takes the
// requests once. If the requests differ in cost, it may then take fewer than would fit.
func TakeUpTo(ctx context.Context, e Engine, most int64, requests ...Request) (times int64, d Decision, err error) {
	if err := checkMost(most); err != nil {
		return 0, Decision{}, err
	}
	if u, ok := e.(UpToTaker); ok {
		return u.TakeUpTo(ctx, most, requests...)
	}
	dearest, sums := int64(0), map[Request]int64{} // the largest total cost of one rule and key
	for _, q := range requests {
		sums[Request{Rule: q.Rule, Key: q.Key}] += q.Cost
		dearest = max(dearest, sums[Request{Rule: q.Rule, Key: q.Key}])
	}
	for tries := 4; ; tries-- {
		if d, err = e.Peek(ctx, repeated(requests, min(most, 1))...); err != nil || most < 1 {
			return 0, d, err
		}
		if times = most; dearest > 0 {
			times = max(min(most, d.Remaining/dearest), 1)
		}
		if tries == 1 {
			times = 1
		}
		d, err = e.Take(ctx, repeated(requests, times)...)
		if err == nil && d.Allowed {
			return times, d, nil
		}
		if err != nil || times == 1 {
			return 0, d, err
		}
	}
}

func checkMost(most int64) error {
	if problem := rule.CheckMost(most); problem != nil {
		return requestError(opTake, problem)
	}
	return nil
}

// repeated returns a copy of the requests with their costs multiplied by times.
func repeated(requests []Request, times int64) []Request {
	copied := append([]Request(nil), requests...)
	for i := range copied {
		copied[i].Cost *= times
	}
	return copied
}
