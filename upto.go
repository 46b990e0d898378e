package weir

import (
	"context"
	"slices"
)

// UpToTaker is an optional ability of an Engine: to take as many units as fit in
// one decision. TakeUpTo takes the same number from every request, most at most,
// whatever their costs say; the same rule and key twice is one request. It
// returns how many; 0 is a refusal, and the Decision then describes that of one
// unit of each.
type UpToTaker interface {
	TakeUpTo(ctx context.Context, most int64, requests ...Request) (taken int64, d Decision, err error)
}

// TakeUpTo takes as many units as fit, the same number from every request, most
// at most: by the engine's own [UpToTaker] if it has it. Otherwise it asks how
// many fit and takes those, and asks again if another caller was faster, three
// times at most: then it may take fewer than would fit.
func TakeUpTo(ctx context.Context, e Engine, most int64, requests ...Request) (taken int64, d Decision, err error) {
	if u, ok := e.(UpToTaker); ok {
		return u.TakeUpTo(ctx, most, requests...)
	}
	one := costing(requests, min(most, 1))
	for try := range upToTries {
		if d, err = e.Peek(ctx, one...); err != nil || most < 1 {
			return 0, d, err
		}
		taken = max(min(most, d.Remaining), 1)
		if try == upToTries-1 {
			taken = 1
		}
		if d, err = e.Take(ctx, costing(one, taken)...); err != nil {
			return 0, d, err
		}
		if d.Allowed {
			return taken, d, nil
		}
	}
	return 0, d, nil
}

const upToTries = 4

// costing is a copy of the requests, each at the same cost, and each rule and key
// once.
func costing(requests []Request, cost int64) (once []Request) {
	for i, q := range requests {
		again := func(r Request) bool {
			return r.Rule != nil && q.Rule != nil && r.Rule.Name() == q.Rule.Name() && r.Key == q.Key
		}
		if !slices.ContainsFunc(requests[:i], again) {
			q.Cost = cost
			once = append(once, q)
		}
	}
	return once
}
