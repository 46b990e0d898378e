package api

import (
	"context"
	"net/http"

	"github.com/weirflow/weir"
)

// apart are the operations of paths whose requests may be decisions of their own.
var apart = map[string]weir.Op{takePath: weir.OpTake, peekPath: weir.OpPeek, "/v1/record": weir.OpRecord, "/v1/return": weir.OpReturn}

// decideApart makes one decision for each request, all in one call of the engine. The answers have the order of the requests.
// A problem with one of them stands in its place.
func (a *API) decideApart(ctx context.Context, c *call, w http.ResponseWriter, r *http.Request) {
	op := apart[r.URL.Path]
	for i := range c.requests {
		c.calls = append(c.calls, weir.Call{Op: op, Requests: c.requests[i : i+1 : i+1]})
		c.results = append(c.results, weir.Result{})
	}
	if err := a.engine.Each(ctx, c.calls, c.results); err != nil {
		a.fail(w, r, err)
		return
	}
	c.answer = append(c.answer, `{"decisions":[`...)
	for i, result := range c.results {
		if result.Err != nil {
			c.answer = appendProblem(c.answer, a.problemOf(r, result.Err, a.patience))
		} else {
			asked := c.calls[i].Requests
			if a.asked != nil && op == weir.OpTake {
				a.asked(asked, result.Decision.Allowed)
			}
			c.answer = c.force.appendMessage(appendDecision(c.answer, result.Decision, c.force.leases.shortest(asked), ""), result.Decision)
			c.answer = c.force.quotas.appendReset(c.answer, result.Decision, asked)
			if op == weir.OpPeek {
				c.answer = c.force.appendMissed(c.answer, asked)
			}
		}
		c.answer[len(c.answer)-1] = ',' // in place of the end of a line
	}
	c.answer[len(c.answer)-1] = ']'
	writeJSON(w, append(c.answer, "}\n"...))
}
