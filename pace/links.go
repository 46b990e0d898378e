package pace

import (
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// This file is about requests with others in their places: weir.Request.Otherwise. For a queue such a request is one key, which may be
// admitted as soon as one of them may be.

// took returns the requests that were taken for a caller that goes.
func (c *caller) took() []weir.Request {
	if c.paid != nil {
		return c.paid
	}
	return c.requests
}

// chainDelays reports whether a limit of a request, or in its place, admits with a delay.
func chainDelays(requests []weir.Request) bool {
	return slices.ContainsFunc(weir.Kit.Links(requests), func(q weir.Request) bool { return q.Rule.Delays() })
}

// equal reports whether requests are the same, and those in their places.
func equal(a, b []weir.Request) bool {
	return slices.EqualFunc(a, b, func(p, q weir.Request) bool {
		return p == q || p.Otherwise != nil && q.Otherwise != nil && slices.Equal(weir.Kit.Links([]weir.Request{p}), weir.Kit.Links([]weir.Request{q}))
	})
}

// chainsFit refuses a request that no engine can decide, or that is above every capacity: its own and those in its place.
func (c *caller) chainsFit() error {
	for i := range c.requests {
		links, fits := weir.Kit.Links(c.requests[i:i+1]), false
		for j := range links {
			if _, err := enginekit.Merge(weir.OpTake, links[j:j+1]); err != nil {
				return err
			}
			fits = fits || links[j].Cost <= traitsOf(links[j].Rule).capacity
		}
		if !fits {
			return &weir.CostError{Cost: links[0].Cost, Capacity: traitsOf(links[0].Rule).capacity}
		}
	}
	return nil
}
