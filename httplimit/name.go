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

// Rule charges each request to a key under some limits: see [front.Rule]. Its default Key is the client's address. A
// request with a negative Cost is refused with 503. A handler states the cost of a Settled rule with [Settle].
// See also [Failures].
type Rule = front.Rule[*http.Request, Answer]

// Answer describes the handler's answer to Rule.After.
type Answer struct {
	Status int
	Bytes  int64 // of the body, without those of a hijacked connection
}

// Settle states the true cost of a request under the named rule: see [front.Settle]. ctx is that of the request. It returns
// an error if no Settled rule has the name.
func Settle(ctx context.Context, rule string, cost int64) error { return front.Settle(ctx, rule, cost) }

func optionError(field, format string, values ...any) *weir.OptionError {
	return front.OptionError(name, field, format, values...)
}
