package front

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// Options configure a Front. Name, Rules and Key are required.
type Options[R, A any] struct {
	// Name is the front's name in errors and log lines, such as "httplimit".
	Name string
	// Rules are taken together, all or nothing: a request that one of them refuses costs nothing under the others. There
	// are 1 to 16.
	Rules []Rule[R, A]
	// Key finds the client of a request, for rules without a Key.
	Key func(R) string
	// Engine remembers and decides. An engine on a network gets the layers of layer.ForNetwork, unless it has a Guard. Default: a
	// weir.Memory of its own, with Parent: Network.
	Engine weir.Engine
	// Guard bounds the decisions of an engine on a network, and says what answers while it is away. Default: 15 ms, and
	// requests are refused as unavailable.
	Guard layer.GuardOptions
	// Prefetch has busy keys of an engine on a network decided in process.
	Prefetch bool
	// DryRun admits all requests without waiting. The limits are counted aside, in states of their own, and DryRun is called
	// with each decision, on a goroutine of its own: see layer.Shadow. Default: nil, which enforces the limits.
	DryRun func(layer.ShadowDecision)
	// Wait holds a request that the limits refuse until they admit it, in order of arrival, for at most this long. It is
	// refused at once if the engine says that it would have to wait longer. Default: 0, which refuses it at once.
	Wait time.Duration
	// MaxWait bounds how long a request is held by a LeakyBucket. New refuses a bucket that may take longer. Default: 10 s.
	MaxWait time.Duration

	// Observe is called once for each request that is decided, or cannot be, with the context of the request: its rule, which a
	// Plan may have named, its key, the result, and how long that took, waiting included. It must be fast.
	Observe func(context.Context, layer.Observation)
	// Logger receives the lines of the Guard, and at most one a minute about other failures. Default: slog.Default().
	Logger *slog.Logger
	// Check returns why the front cannot use a rule. Default: it uses each that the engine holds.
	Check func(*weir.Rule) error
}

// Rule charges each request to a key under some limits. It has exactly one of Limit, Rule and Plan.
type Rule[R, A any] struct {
	// Limit is text: "login=5/m and 100/d". Rules of one name share their states on an engine, so text for Options.Engine
	// has a name. Without Options.Engine, the name may be left out. Default name: "client", or "key" if there is a Key.
	Limit string
	// Rule is a rule made by weir.NewRule or weir.ParseRule.
	Rule *weir.Rule
	// Plan returns the rule of each request: of a tenant's plan, or the rule in force now. So limits change while the
	// program runs: docs/howto/changing-limits.md. Rules of one name share states, and the units used stay used. Make a rule
	// when a limit changes, because making one for each request is slow. A plan without a limit is a rule of
	// weir.Unlimited. A request whose plan is nil is refused as unavailable.
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
	// Estimate chooses the units that a request takes by the true costs of the last requests of its key. Cost is then the
	// estimate of the program, for a key whose costs are not known yet. The rule needs After, or is Settled, and has no slots.
	Estimate *Estimate
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

const (
	maxRules       = 16
	defaultMaxWait = 10 * time.Second
)

func (o *Options[R, A]) setDefaults() {
	if o.Engine == nil {
		o.Engine = weir.NewMemory(weir.MemoryOptions{Parent: Network})
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.MaxWait = cmp.Or(o.MaxWait, defaultMaxWait)
}

// layers puts layers around the engine.
func (o *Options[R, A]) layers() (err error) {
	guard := o.Guard
	guard.Logger = cmp.Or(guard.Logger, o.Logger)
	if o.Engine, _, err = layer.ForNetwork(o.Engine, layer.NetworkOptions{Guard: guard, Prefetch: o.Prefetch}); err == nil && o.DryRun != nil {
		o.Engine, err = layer.Shadow(o.Engine, layer.ShadowOptions{Decided: o.DryRun})
	}
	return err
}

func (o *Options[R, A]) check() (problems []error) {
	if len(o.Rules) > maxRules {
		problems = append(problems, OptionError(o.Name, "rules", "are %d, above %d", len(o.Rules), maxRules))
	}
	for _, bound := range []struct {
		field string
		value time.Duration
	}{{"wait", o.Wait}, {"maxWait", o.MaxWait}} {
		if bound.value < 0 {
			problems = append(problems, OptionError(o.Name, bound.field, "%v is negative", bound.value))
		}
	}
	return problems
}

// OptionError returns the error of an option of the named front.
func OptionError(front, field, format string, values ...any) *weir.OptionError {
	return &weir.OptionError{Op: front, Field: field, Reason: fmt.Sprintf(format, values...)}
}
