package httplimit

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

// Options configure a middleware. Only Rules is required.
type Options struct {
	// Rules are taken together, all or nothing: a request that one of them
	// refuses costs nothing under the others. There are 1 to 16.
	Rules []Rule
	// Engine remembers and decides. Default: a weir.Memory of its own.
	Engine weir.Engine
	// Client finds the address of a client, for rules without a Key. Default:
	// the address of the connection, and nothing that a client can send.
	Client *Client

	// Headers is the format of the header fields about limits. Default: Draft11.
	Headers Headers
	// RefusalsOnly leaves the fields out of answers to admitted requests.
	RefusalsOnly bool
	// CORS lets scripts in browsers read refusals.
	CORS CORS

	// Skip names requests that are not limited, such as health checks.
	Skip func(*http.Request) bool
	// LimitPreflights counts CORS preflights, which are free otherwise. A
	// request counts as a preflight if it is OPTIONS with an Origin and an
	// Access-Control-Request-Method.
	LimitPreflights bool
	// DryRun counts requests and admits all of them without header fields or
	// waiting. Observe sees the refusals. Give a dry run rules or an engine of
	// its own: otherwise it shares states with the limits in force.
	DryRun bool
	// Wait holds a request that the limits refuse until they admit it, in order of arrival, for at most this long. It
	// is refused at once if the engine says that it would have to wait longer. A waiting request whose client leaves is
	// not passed on. Default: 0, which refuses it at once.
	Wait time.Duration
	// MaxWait bounds how long a request is held by a LeakyBucket. New refuses
	// a bucket that may take longer. Default: 10 s.
	MaxWait time.Duration

	// Undecided chooses the answer to requests while the engine fails. Default: RefuseUndecided.
	Undecided front.Undecided
	// Timeout bounds a decision of an engine that may hang. The request is then
	// undecided. A client that leaves does not end a decision. Default: 100 ms.
	Timeout time.Duration
	// Refuse writes the answer to a refused request. The header fields are set
	// before. Default: Refusal.Write.
	Refuse func(http.ResponseWriter, *http.Request, Refusal)
	// Observe is called with each decision and each failure to decide, also in a
	// dry run. It must be fast.
	Observe func(*http.Request, weir.Decision, error)
	// Logger receives a line for each likely mistake in the configuration, and at most one a minute while the engine
	// fails. Default: slog.Default(). A logger with slog.DiscardHandler is silent.
	Logger *slog.Logger
}

// The treatment of requests without a key, for Rule.Missing: they share one budget, are refused with 400, or the rule does
// not apply.
const (
	MissingShares    = front.MissingShares
	MissingRefused   = front.MissingRefused
	MissingUnlimited = front.MissingUnlimited
)

// The answer to requests while the engine fails: they are refused with 503, or passed on without a limit. Requests that no
// engine could decide, such as one with a negative cost, are always refused.
const (
	RefuseUndecided = front.RefuseUndecided
	AdmitUndecided  = front.AdmitUndecided
)

func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.Default()
	}
	return o.Logger
}

func (o *Options) client() *Client {
	if o.Client == nil {
		return direct(o.logger())
	}
	return o.Client
}

func (o *Options) check() error {
	var bad error
	if o.Headers < Draft11 || o.Headers > NoHeaders {
		bad = optionError("headers", "%d is no format", o.Headers)
	}
	return errors.Join(bad, o.CORS.check())
}
