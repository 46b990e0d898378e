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

// Answer describes the handler's answer to Rule.After.
type Answer struct {
	Status int
	Bytes  int64 // of the body, without those of a hijacked connection
}

// Settle states the true cost of a request under the named rule: see [front.Settle]. ctx is that of the request.
func Settle(ctx context.Context, rule string, cost int64) bool { return front.Settle(ctx, rule, cost) }

func optionError(field, format string, values ...any) *weir.OptionError {
	return front.OptionError(name, field, format, values...)
}
