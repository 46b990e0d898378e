package weir

import (
	"context"
	"fmt"
	"time"
)

// Engine remembers the state of keys and decides. It is the one border between
// what asks (servers, middleware, layers) and what remembers (memory, Redis),
// at the level of a decision.
//
// The requests of one call are taken all or nothing: if one refuses, nothing
// is written. The same rule and key twice in a call is one request with the
// costs summed. A refusal is a Decision; an error means that the engine could
// not decide, and then nothing was admitted. [MayHaveCounted] tells whether the
// cost may have been counted all the same. Requests are checked before anything
// is written: a bad one is a [*RequestError].
//
// A [LeakyBucket], or a [SlidingLog] that counts denied attempts, decides
// alone: beside another limit in one call it is a [*RequestError].
//
// Package enginekit has what an engine needs, and package limittest proves it.
//
// No method keeps the slices it is given. All methods may be called
// concurrently.
type Engine interface {
	// Take admits the cost of all requests now, or none.
	Take(ctx context.Context, requests ...Request) (Decision, error)

	// TakeEach decides requests that have nothing to do with each other, in
	// order, and writes the answer to requests[i] into results[i]. A bad
	// request spoils only its own result. The error is for the call as a
	// whole (the slices differ in length, say), and then nothing was decided.
	TakeEach(ctx context.Context, requests []Request, results []Result) error

	// Reserve is Take with a handle to settle or cancel once the true cost is
	// known. The handle of a refusal settles nothing. It is never nil unless
	// there is an error, and a nil handle may be cancelled. See the function
	// [Reserve], which an engine calls for this.
	Reserve(ctx context.Context, requests ...Request) (*Reservation, error)

	// Peek is the answer Take would give, and writes nothing.
	Peek(ctx context.Context, requests ...Request) (Decision, error)

	// Record counts the cost whether it fits or not. Allowed says whether all
	// of it still fitted. A negative cost gives units back; a key never gets
	// better than fresh.
	Record(ctx context.Context, requests ...Request) (Decision, error)

	// Reset forgets what is known of the requests' keys under their rules.
	// Costs are ignored.
	Reset(ctx context.Context, requests ...Request) error

	// Check says which limits of the rules this engine cannot hold, as
	// [*LimitError] values joined; nil if it holds all.
	Check(rules ...*Rule) error
}

// Result is one answer of [Engine.TakeEach].
type Result struct {
	Decision Decision
	Err      error
}

// WithinTaker is an optional ability of an Engine: Take with a deadline but
// without a context, for callers on a hot path.
type WithinTaker interface {
	TakeWithin(d time.Duration, requests ...Request) (Decision, error)
}

// TakeWithin is Take with at most d to decide: by the engine's own
// [WithinTaker] if it has it, else by a context.
func TakeWithin(e Engine, d time.Duration, requests ...Request) (Decision, error) {
	if w, ok := e.(WithinTaker); ok {
		return w.TakeWithin(d, requests...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return e.Take(ctx, requests...)
}

// UpToTaker is an optional ability of an Engine: to take requests as many times
// as they fit, in one decision. TakeUpTo takes each of them the same number of
// times, most times at most, so that requests of cost 1 take that many units. It
// returns how many times; 0 is a refusal, and the Decision is that of the
// requests once.
type UpToTaker interface {
	TakeUpTo(ctx context.Context, most int64, requests ...Request) (times int64, d Decision, err error)
}

// TakeUpTo takes the requests as many times as they fit, most times at most: by
// the engine's own [UpToTaker] if it has it. Otherwise it peeks and takes what
// should fit, and tries again if another caller was faster; the fourth time it
// takes the requests once. If they differ in cost, it may then take fewer than
// would fit.
func TakeUpTo(ctx context.Context, e Engine, most int64, requests ...Request) (times int64, d Decision, err error) {
	if err := checkMost(most); err != nil {
		return 0, Decision{}, err
	}
	if u, ok := e.(UpToTaker); ok {
		return u.TakeUpTo(ctx, most, requests...)
	}
	dearest := dearestCost(requests)
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
		if d, err = e.Take(ctx, repeated(requests, times)...); err != nil {
			return 0, d, err
		}
		if d.Allowed {
			return times, d, nil
		}
		if times == 1 {
			return 0, d, nil
		}
	}
}

func checkMost(most int64) error {
	if most < 0 {
		return &RequestError{Op: opTake, Field: "most", Reason: fmt.Sprintf("%d is negative", most)}
	}
	return nil
}

// repeated is a copy of the requests at so many times their cost.
func repeated(requests []Request, times int64) []Request {
	copied := append([]Request(nil), requests...)
	for i := range copied {
		copied[i].Cost *= times
	}
	return copied
}

// dearestCost is the largest cost of one rule and key.
func dearestCost(requests []Request) (dearest int64) {
	for _, q := range requests {
		var sum int64
		for _, r := range requests {
			if r.Rule == q.Rule && r.Key == q.Key {
				sum += r.Cost
			}
		}
		dearest = max(dearest, sum)
	}
	return dearest
}
