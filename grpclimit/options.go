package grpclimit

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
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
	Skip func(ctx context.Context, method string) bool
	// DryRun counts calls and admits all of them without waiting. Observe sees the refusals. Give a dry run rules or an
	// engine of its own: otherwise it shares states with the limits in force.
	DryRun bool
	// MaxWait bounds how long a call is held by a LeakyBucket. NewServer refuses a bucket that may take longer.
	// Default: 10 s.
	MaxWait time.Duration

	// Undecided says how calls are answered while the engine fails. Default: RefuseUndecided.
	Undecided Undecided
	// Timeout bounds a decision of an engine that may hang. The call is then undecided. A client that leaves does not end
	// a decision. Default: 100 ms.
	Timeout time.Duration
	// Observe is called with each decision and each failure to decide, also in a dry run. It must be fast.
	Observe func(ctx context.Context, method string, d weir.Decision, err error)
	// Logger receives at most one line a minute while the engine fails. Default: slog.Default().
	Logger *slog.Logger

	failures *failureLog
}

// Rule charges each call to a key under some limits. It has exactly one of Limit, Rule and Plan.
type Rule struct {
	// Limit is text, with or without a name: "login=5/m and 100/d", "10/s". Default name: "client", or "key" if there is
	// a Key.
	Limit string
	// Rule is a rule made by weir.NewRule or weir.ParseRule.
	Rule *weir.Rule
	// Plan names the rule of each call, such as that of a tenant's plan. It must return the same few rules again. A plan
	// without a limit is a rule of weir.Unlimited. A call whose plan is nil cannot be decided: see Undecided.
	Plan func(ctx context.Context, method string) *weir.Rule

	// Key finds the user, tenant or client to charge. Default: Peer in a Server, Everyone in a Client.
	Key Key
	// Missing says how calls without a key are limited. Default: MissingShares.
	Missing Missing

	// Cost returns the units that a call takes. The message is nil when a stream opens. A call with a negative cost is
	// refused with Unavailable. Default: 1.
	Cost func(ctx context.Context, method string, message any) int64
}

// Missing says how calls without a key are limited.
type Missing int

const (
	MissingShares    Missing = iota // all calls without a key share one budget
	MissingRefused                  // refused with InvalidArgument
	MissingUnlimited                // this rule does not apply
)

// Undecided says how calls are answered while the engine fails. Calls that no engine could decide, such as one with a
// negative cost, are always refused.
type Undecided int

const (
	RefuseUndecided Undecided = iota // refused with Unavailable
	AdmitUndecided                   // passed on without a limit
)

const (
	maxRules       = 16
	defaultMaxWait = 10 * time.Second
	defaultTimeout = 100 * time.Millisecond
)

func (o *Options) setDefaults() {
	if o.Engine == nil {
		o.Engine = weir.NewMemory(weir.MemoryOptions{Parent: httplimit.Network})
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.MaxWait = cmp.Or(o.MaxWait, defaultMaxWait)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.failures = &failureLog{}
}

func (o *Options) check() (problems []error) {
	bad := func(field, format string, values ...any) {
		problems = append(problems, optionError(field, format, values...))
	}
	if len(o.Rules) == 0 || len(o.Rules) > maxRules {
		bad("rules", "are %d, not 1 to %d", len(o.Rules), maxRules)
	}
	if o.MaxWait < 0 {
		bad("maxWait", "%v is negative", o.MaxWait)
	}
	if o.Timeout < 0 {
		bad("timeout", "%v is negative", o.Timeout)
	}
	if o.Undecided < RefuseUndecided || o.Undecided > AdmitUndecided {
		bad("undecided", "%d is no policy", o.Undecided)
	}
	return problems
}

func optionError(field, format string, values ...any) *weir.OptionError {
	return &weir.OptionError{Op: "grpclimit", Field: field, Reason: fmt.Sprintf(format, values...)}
}
