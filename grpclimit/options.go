package grpclimit

import (
	"context"
	"log/slog"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

// Call is a call that a limit is asked about, or a message of a stream.
type Call struct {
	Context context.Context
	Method  string // like "/package.Service/Method"
	Message any    // nil when a stream opens
}

// Rule charges each call to a key under some limits: see [front.Rule]. Its default Key is Peer in a Server and Everyone in
// a Client. A Server refuses a negative Cost with Unavailable. After gets the error of the handler, and [Settle] states
// the cost of a call; a Client has neither. With EachMessage they do not change the costs of
// messages.
type Rule = front.Rule[Call, error]

// The treatment of calls without a key, for Rule.Missing: they share one budget, fail with InvalidArgument, or the rule
// does not apply.
const (
	MissingShares    = front.MissingShares
	MissingRefused   = front.MissingRefused
	MissingUnlimited = front.MissingUnlimited
)

// The answer to calls while the engine fails: they fail with Unavailable, or go ahead without a limit.
const (
	RefuseUndecided = front.RefuseUndecided
	AdmitUndecided  = front.AdmitUndecided
)

// Options configure a Server. Only Rules is required.
type Options struct {
	// Rules are taken together, all or nothing: a call that one of them refuses costs nothing under the others. There
	// are 1 to 16.
	Rules []Rule
	// Engine remembers and decides. Default: a weir.Memory of its own.
	Engine weir.Engine

	// EachMessage charges each message that a client sends on a stream, instead of the opening of the stream. Slots are
	// held for the whole stream all the same. Unary calls are charged as usual.
	EachMessage bool
	// Skip names calls that are not limited, such as health checks.
	Skip func(Call) bool
	// DryRun counts calls and admits all of them without waiting. Observe sees the refusals. Give a dry run rules or an
	// engine of its own: otherwise it shares states with the limits in force.
	DryRun bool
	// MaxWait bounds how long a call is held by a LeakyBucket. NewServer refuses a bucket that may take longer.
	// Default: 10 s.
	MaxWait time.Duration

	// Undecided says how calls are answered while the engine fails. Default: RefuseUndecided.
	Undecided front.Undecided
	// Timeout bounds a decision of an engine that may hang. The call is then undecided. A client that leaves does not end
	// a decision. Default: 100 ms.
	Timeout time.Duration
	// Observe is called with each decision and each failure to decide, also in a dry run. It must be fast.
	Observe func(c Call, d weir.Decision, err error)
	// Logger receives at most one line a minute while the engine fails. Default: slog.Default().
	Logger *slog.Logger
}

// Settle states the true cost of a call under the named rule: see [front.Settle]. ctx is that of the handler.
func Settle(ctx context.Context, rule string, cost int64) bool { return front.Settle(ctx, rule, cost) }

const name = "grpclimit" // in errors and log lines

func optionError(field, format string, values ...any) *weir.OptionError {
	return front.OptionError(name, field, format, values...)
}
