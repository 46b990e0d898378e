package httplimit

import (
	"context"
	"slices"
	"time"

	"github.com/weirflow/weir/front"
)

// The drafts know whole seconds only, and t is the time until the whole quota is back. A client that has nothing else waits
// a second for a unit that is back after 10 ms. So an answer after which the same request does not fit says when it does. The
// drafts let a vendor add parameters with a prefix, and other clients ignore them. They are in microseconds. Limits whose
// windows are long need none: a Transport that rounds up loses a tenth at most, and knows when its own units come back.
const (
	fineBelow = 10 * time.Second

	paramAgain  = ";weir-wait-us=" // of RateLimit: until a request like this one fits
	paramWindow = ";weir-w-us="    // of RateLimit-Policy: w, if it is not in whole seconds
)

// again returns how long until a request like an admitted one fits. It is 0 if that fits now, is unknown or is not announced.
// Where the decision does not tell, the engine is asked once more.
func (h *handler) again(ctx context.Context, a *ask) time.Duration {
	if h.Headers != Draft11 {
		return 0
	}
	wait, known := tells(a)
	if !known {
		wait = h.front.Again(ctx, a)
	}
	return wait
}

// tells returns what a decision says about the wait of the next request. It is false if only the engine knows.
func tells(a *ask) (again time.Duration, known bool) {
	d, p, cost := &a.Decision, binding(a), max(a.Requests[a.Binding()].Cost, 1)
	if !d.Allowed || p == nil || p.held || d.Remaining >= cost {
		return 0, true
	}
	if !slices.ContainsFunc(a.Sets, func(s *front.Set) bool { return policiesOf(s).fine }) {
		return 0, true
	}
	if !p.told || len(a.Requests) > 1 || len(policiesOf(a.Sets[0]).each) > 1 {
		return 0, false // another limit may let it wait longer
	}
	if p.rate.Count == 0 {
		return d.LimitReset, true
	}
	again = max(d.LimitReset-p.rate.Of(max(p.capacity-cost, 0)), 0) // a key may lack the rest of the capacity then
	if int64(p.rate.Period)%p.rate.Count != 0 {
		again++ // both are rounded up
	}
	return again, true
}

// micros returns a time in whole microseconds, rounded up, of at most the digits of a structured field.
func micros(d time.Duration) int64 {
	us := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		us++
	}
	return min(us, maxInteger)
}
