package httplimit

import (
	"context"
	"net/http"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

const name = "httplimit" // in errors and log lines

type (
	ask   = front.Ask[*http.Request, Answer]
	grant = front.Grant[*http.Request, Answer]
)

// Rule charges each request to a key under some limits. Its fields are those of [front.Rule], which says more of each:
//
//	Limit   string                                   // "login=5/m and 100/d"
//	Rule    *weir.Rule                               // or a rule that was made
//	Plan    func(*http.Request) *weir.Rule           // or the rule of each request: limits that change
//	Key     func(*http.Request) string               // whom to charge
//	Missing front.Missing                            // treatment of a request without a key
//	Cost    func(*http.Request) int64                // 1 by default
//	After   func(*http.Request, Answer, int64) int64 // the true cost, when the handler has returned
//	Estimate *front.Estimate                          // what to take before that, learnt from true costs
//	Settled bool                                     // the handler calls Settle
//
// The default Key is the client's address. A request with a negative Cost is refused with 503. See also [Failures].
type Rule = front.Rule[*http.Request, Answer]

// Answer describes the handler's answer to Rule.After.
type Answer struct {
	Status int
	Bytes  int64 // bytes of the body, without those of a hijacked connection
}

// Settle states the true cost of a request under the named rule: see [front.Settle]. ctx is the request's context. It returns
// an error if no Settled rule has the name.
func Settle(ctx context.Context, rule string, cost int64) error { return front.Settle(ctx, rule, cost) }

func optionError(field, format string, values ...any) *weir.OptionError {
	return front.OptionError(name, field, format, values...)
}
