package httplimit

import (
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// The drafts know whole seconds only, and t is the time until the whole quota is back. A client that has nothing else waits
// a second for a unit that is back after 10 ms. So an answer says when the same request fits again, if it does not now.
// The drafts let a vendor add parameters with a prefix, and other clients ignore them. They are in microseconds. Limits
// whose windows are long need none: a Transport that rounds up loses a tenth at most, and knows when its own units come
// back.
const (
	fineBelow = 10 * time.Second

	paramAgain  = ";weir-wait-us=" // of RateLimit: until a request like this one fits
	paramWindow = ";weir-w-us="    // of RateLimit-Policy: w, if it is not in whole seconds
)

// untilAgain returns how long until a request like an admitted one fits. It is 0 if that fits now, is unknown or is not
// announced. If the decision does not contain it, ask returns it.
func untilAgain(d *weir.Decision, p *policy, requests []weir.Request, ask func() time.Duration) time.Duration {
	if !d.Allowed || p == nil || p.held {
		return 0
	}
	cost := max(requests[enginekit.Binding(d, requests)].Cost, 1)
	switch {
	case d.Remaining >= cost || !slices.ContainsFunc(requests, func(q weir.Request) bool { return policiesOf(q.Rule).fine }):
		return 0
	case p.told && len(requests) == 1 && len(policiesOf(requests[0].Rule).each) == 1:
		return p.again(d, cost)
	case ask == nil:
		return 0
	}
	return ask() // another limit may let it wait longer
}

// again returns how long until the limit admits a cost, if that is announced.
func (p *policy) again(d *weir.Decision, cost int64) time.Duration {
	if p.rate.Count == 0 {
		return d.LimitReset
	}
	again := max(d.LimitReset-p.rate.Of(max(p.capacity-cost, 0)), 0) // a key may lack the rest of the capacity then
	if int64(p.rate.Period)%p.rate.Count != 0 {
		again++ // both are rounded up
	}
	return again
}

// micros returns a time in whole microseconds, rounded up, of at most the digits of a structured field.
func micros(d time.Duration) int64 {
	us := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		us++
	}
	return min(us, maxInteger)
}
