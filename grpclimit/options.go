package grpclimit

import (
	"context"
	"log/slog"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/layer"
)

// RPC is a call that a limit is asked about, or a message of a stream.
type RPC struct {
	Context context.Context
	Method  string // like "/package.Service/Method"
	Message any    // nil when a stream opens
}

// Rule charges each call to a key under some limits. Its fields are those of [front.Rule], which says more of each:
//
//	Limit   string                         // "login=5/m and 100/d"
//	Rule    *weir.Rule                     // or a rule that was made
//	Plan    func(RPC) *weir.Rule          // or the rule of each call: limits that change
//	Key     func(RPC) string              // whom to charge
//	Missing front.Missing                  // treatment of a call without a key
//	Cost    func(RPC) int64               // 1 by default
//	After   func(RPC, error, int64) int64 // the true cost, when the handler has returned
//	Estimate *front.Estimate               // what to take before that, learnt from true costs
//	Settled bool                           // the handler calls Settle
//
// The default Key is Peer in a Server and Everyone in a Client. A Server refuses a negative Cost with Unavailable. After gets
// the error of the handler; a Client has neither After nor Settled. With EachMessage they do not change the costs of messages, and a rule has no
// Estimate.
type Rule = front.Rule[RPC, error]

// The treatment of calls without a key, for Rule.Missing: they share one budget, fail with InvalidArgument, or the rule
// does not apply.
const (
	MissingShares    = front.MissingShares
	MissingRefused   = front.MissingRefused
	MissingUnlimited = front.MissingUnlimited
)

// Options configure a Server. Only Rules is required.
type Options struct {
	// Rules are taken together, all or nothing: a call that one of them refuses costs nothing under the others. There
	// are 1 to 16.
	Rules []Rule
	// Engine remembers and decides. An engine on a network gets a layer.Guard and a layer.DenyUntil, unless it has a Guard.
	// Default: a weir.Memory of its own.
	Engine weir.Engine
	// Guard says how long a decision of an engine on a network may take, and what answers while it is away. A client that
	// leaves does not end a decision. Default: 15 ms, and calls fail with Unavailable.
	Guard layer.GuardOptions
	// Prefetch has busy keys of an engine on a network decided in process: see layer.Prefetch.
	Prefetch bool

	// EachMessage charges each message that a client sends on a stream, instead of the opening of the stream. Slots are
	// held for the whole stream all the same. Unary calls are charged as usual.
	EachMessage bool
	// Skip names calls that are not limited, such as health checks.
	Skip func(RPC) bool
	// DryRun admits all calls without waiting. The limits are counted aside, in states of their own, and
	// DryRun is called with each decision, on a goroutine of its own. Default: nil, which enforces the limits.
	DryRun func(layer.ShadowDecision)
	// MaxWait bounds how long a call is held by a LeakyBucket. NewServer refuses a bucket that may take longer.
	// Default: 10 s.
	MaxWait time.Duration

	// Observe is called once for each call that is decided, or cannot be: with its rule, which a Plan may have named, its
	// key, the result, and how long that took. It must be fast. The metrics of package promlimit are one line:
	// Observe: metrics.Decided.
	Observe func(context.Context, layer.Observation)
	// Logger receives the lines of the Guard, and at most one a minute about other failures. Default: slog.Default().
	Logger *slog.Logger
}

// Settle states the true cost of a call under the named rule: see [front.Settle]. ctx is the handler's context. It returns
// an error if no Settled rule has the name, and on a stream with EachMessage.
func Settle(ctx context.Context, rule string, cost int64) error { return front.Settle(ctx, rule, cost) }

const name = "grpclimit" // in errors and log lines

func optionError(field, format string, values ...any) *weir.OptionError {
	return front.OptionError(name, field, format, values...)
}
