package httplimit

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/layer"
)

// Options configure a middleware. Only Rules is required.
type Options struct {
	// Rules are taken together, all or nothing: a request that one of them
	// refuses costs nothing under the others. There are 1 to 16.
	Rules []Rule
	// Engine remembers and decides. An engine on a network gets a layer.Guard and a layer.DenyUntil, unless it has a Guard.
	// Default: a weir.Memory of its own.
	Engine weir.Engine
	// Guard says how long a decision of an engine on a network may take, and what answers while it is away. A client that
	// leaves does not end a decision. Default: 15 ms, and requests fail with 503.
	Guard layer.GuardOptions
	// Prefetch has busy keys of an engine on a network decided in process: see layer.Prefetch.
	Prefetch bool
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
	// DryRun admits all requests without waiting or header fields. The limits are counted aside, in states of their own, and
	// DryRun is called with each decision, on a goroutine of its own. Default: nil, which enforces the limits.
	DryRun func(layer.ShadowDecision)
	// Wait holds a request that the limits refuse until they admit it, in order of arrival, for at most this long. It
	// is refused at once if the engine says that it would have to wait longer. A waiting request whose client leaves is
	// not passed on. Default: 0, which refuses it at once.
	Wait time.Duration
	// MaxWait bounds how long a request is held by a LeakyBucket. New refuses
	// a bucket that may take longer. Default: 10 s.
	MaxWait time.Duration

	// Refuse writes the answer to a refused request. The header fields are set
	// before. Default: Refusal.Write.
	Refuse func(http.ResponseWriter, *http.Request, Refusal)
	// Observe is called once for each request that is decided, or cannot be: with its rule, which a Plan may have named, its
	// key, the result, and how long that took. It must be fast. The metrics of package promlimit are one line:
	// Observe: metrics.Decided.
	Observe func(context.Context, layer.Observation)
	// Logger receives a line for each likely mistake in the configuration, and those of the Guard, and at most one a
	// minute about other failures. Default: slog.Default(). A logger with slog.DiscardHandler is silent.
	Logger *slog.Logger
}

// The treatment of requests without a key, for Rule.Missing: they share one budget, are refused with 400, or the rule does
// not apply.
const (
	MissingShares    = front.MissingShares
	MissingRefused   = front.MissingRefused
	MissingUnlimited = front.MissingUnlimited
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
