package weir

import (
	"context"
	"fmt"
)

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
