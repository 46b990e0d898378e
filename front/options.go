package front

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirflow/weir"
)

// Options configure a Front. Name, Rules and Key are required.
type Options[R, A any] struct {
	// Name is that of the front in errors and log lines, such as "httplimit".
	Name string
	// Rules are taken together, all or nothing: a request that one of them refuses costs nothing under the others. There
	// are 1 to 16.
	Rules []Rule[R, A]
	// Key finds the client of a request, for rules without a Key.
	Key func(R) string
	// Engine remembers and decides. Default: a weir.Memory of its own, with Parent: Network.
	Engine weir.Engine
	// DryRun counts requests and admits all of them without waiting. Observe sees the refusals.
	DryRun bool
	// Wait holds a request that the limits refuse until they admit it, in order of arrival, for at most this long. It is
	// refused at once if the engine says that it would have to wait longer. Default: 0, which refuses it at once.
	Wait time.Duration
	// MaxWait bounds how long a request is held by a LeakyBucket. New refuses a bucket that may take longer. Default: 10 s.
	MaxWait time.Duration

	// Undecided chooses the answer to requests while the engine fails. Default: RefuseUndecided.
	Undecided Undecided
	// Timeout bounds a decision of an engine that may hang. The request is then undecided. Default: 100 ms.
	Timeout time.Duration
	// Observe is called with each decision and each failure to decide, also in a dry run. It must be fast.
	Observe func(R, weir.Decision, error)
	// Logger receives at most one line a minute while the engine fails. Default: slog.Default().
	Logger *slog.Logger
	// Describe returns what the front keeps with each rule (Set.Note), or why it cannot use the rule. Default: nothing.
	Describe func(*weir.Rule) (any, error)
}

// Rule charges each request to a key under some limits. It has exactly one of Limit, Rule and Plan.
type Rule[R, A any] struct {
	// Limit is text, with or without a name: "login=5/m and 100/d", "10/s". Default name: "client", or "key" if there is a
	// Key.
	Limit string
	// Rule is a rule made by weir.NewRule or weir.ParseRule.
	Rule *weir.Rule
	// Plan names the rule of each request, such as that of a tenant's plan. It must return the same few rules again. A plan
	// without a limit is a rule of weir.Unlimited. A request whose plan is nil cannot be decided: see Undecided.
	Plan func(R) *weir.Rule

	// Key finds the user, tenant or client to charge. An empty key means that the request has none. A key of more than 256
	// bytes is replaced by its SHA-256 hash. Default: the client of the request.
	Key func(R) string
	// Missing chooses the treatment of requests without a key. Default: MissingShares.
	Missing Missing

	// Cost returns the units that a request takes. No engine can decide on a negative cost. Default: 1.
	Cost func(R) int64
	// After states the true cost when the handler has returned, from its answer and the units that were taken. The
	// difference is given back or counted on top. If the handler panics, the cost stays as it was taken.
	After func(r R, answer A, taken int64) int64
	// Settled lets the handler state the true cost with Settle.
	Settled bool
}

// Missing is the treatment of requests without a key.
type Missing int

const (
	MissingShares    Missing = iota // all requests without a key share one budget
	MissingRefused                  // refused as a mistake of the client
	MissingUnlimited                // this rule does not apply
)

// Undecided is the answer to requests while the engine fails. Requests that no engine could decide, such as one with
// a negative cost, are always refused.
type Undecided int

const (
	RefuseUndecided Undecided = iota // refused as unavailable
	AdmitUndecided                   // passed on without a limit
)

const (
	maxRules       = 16
	defaultMaxWait = 10 * time.Second
	defaultTimeout = 100 * time.Millisecond
)

func (o *Options[R, A]) setDefaults() {
	if o.Engine == nil {
		o.Engine = weir.NewMemory(weir.MemoryOptions{Parent: Network})
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.MaxWait = cmp.Or(o.MaxWait, defaultMaxWait)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
}

func (o *Options[R, A]) check() (problems []error) {
	if len(o.Rules) > maxRules {
		problems = append(problems, OptionError(o.Name, "rules", "are %d, above %d", len(o.Rules), maxRules))
	}
	for _, bound := range []struct {
		field string
		value time.Duration
	}{{"wait", o.Wait}, {"maxWait", o.MaxWait}, {"timeout", o.Timeout}} {
		if bound.value < 0 {
			problems = append(problems, OptionError(o.Name, bound.field, "%v is negative", bound.value))
		}
	}
	if o.Undecided < RefuseUndecided || o.Undecided > AdmitUndecided {
		problems = append(problems, OptionError(o.Name, "undecided", "%d is no policy", o.Undecided))
	}
	return problems
}

// OptionError returns the error of an option of the named front.
func OptionError(front, field, format string, values ...any) *weir.OptionError {
	return &weir.OptionError{Op: front, Field: field, Reason: fmt.Sprintf(format, values...)}
}
