package httplimit

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
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
	Undecided Undecided
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

// Rule charges each request to a key under some limits. It has exactly one of
// Limit, Rule and Plan.
type Rule struct {
	// Limit is text, with or without a name: "login=5/m and 100/d", "10/s".
	// Default name: "client", or "key" if there is a Key.
	Limit string
	// Rule is a rule made by weir.NewRule or weir.ParseRule.
	Rule *weir.Rule
	// Plan names the rule of each request, such as that of a tenant's plan. It
	// must return the same few rules again. A plan without a limit is a
	// rule of weir.Unlimited. A request whose plan is nil cannot be decided:
	// see Undecided.
	Plan func(*http.Request) *weir.Rule

	// Key finds the user, tenant or client to charge. Default: the client's address.
	Key Key
	// Missing chooses the treatment of requests without a key. Default: MissingShares.
	Missing Missing

	// Cost returns the units that a request takes. A request with a negative
	// cost is refused with 503. Default: 1.
	Cost func(*http.Request) int64
	// After states the true cost when the handler has returned. The difference
	// to Cost is given back or counted on top. If the handler panics, the cost
	// stays as it was taken. See Failures.
	After func(*http.Request, Answer) int64
	// Settled lets the handler state the true cost with Settle.
	Settled bool
}

// Missing is the treatment of requests without a key.
type Missing int

const (
	MissingShares    Missing = iota // all requests without a key share one budget
	MissingRefused                  // refused with 400
	MissingUnlimited                // this rule does not apply
)

// Undecided is the answer to requests while the engine fails. Requests that no engine could decide, such as one with
// a negative cost, are always refused.
type Undecided int

const (
	RefuseUndecided Undecided = iota // refused with 503
	AdmitUndecided                   // passed on without a limit
)

const (
	maxRules       = 16
	defaultMaxWait = 10 * time.Second
	defaultTimeout = 100 * time.Millisecond
)

// rule is a Rule, ready to use.
type rule struct {
	Rule
	fixed *policies // nil if there is a Plan
}

func newLimiter(o Options) (*limiter, error) {
	o.setDefaults()
	l := &limiter{Options: o, names: map[string]bool{}, watch: newWatch(o.Logger)}
	problems := []error{o.check()}
	for i := range o.Rules {
		made, err := l.newRule(o.Rules[i])
		if err != nil {
			problems = append(problems, inField(fmt.Sprintf("rules[%d]", i), err))
			continue
		}
		if made.fixed != nil && l.names[made.fixed.rule.Name()] {
			problems = append(problems, optionError(fmt.Sprintf("rules[%d]", i), "has the name %q of an earlier rule, with which it would share states: give it another", made.fixed.rule.Name()))
		} else if made.fixed != nil {
			l.names[made.fixed.rule.Name()] = true
		}
		l.rules = append(l.rules, made)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	var err error
	if o.Wait > 0 && !o.DryRun {
		l.queue, err = pace.NewQueue(o.Engine, pace.QueueOptions{})
	}
	return l, err
}

func (o *Options) setDefaults() {
	if o.Engine == nil {
		o.Engine = weir.NewMemory(weir.MemoryOptions{Parent: Network})
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Client == nil {
		o.Client = direct(o.Logger)
	}
	o.MaxWait = cmp.Or(o.MaxWait, defaultMaxWait)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
}

func (o *Options) check() error {
	var problems []error
	bad := func(field, format string, values ...any) {
		problems = append(problems, optionError(field, format, values...))
	}
	if len(o.Rules) == 0 || len(o.Rules) > maxRules {
		bad("rules", "are %d, not 1 to %d", len(o.Rules), maxRules)
	}
	if o.Wait < 0 {
		bad("wait", "%v is negative", o.Wait)
	}
	if o.MaxWait < 0 {
		bad("maxWait", "%v is negative", o.MaxWait)
	}
	if o.Timeout < 0 {
		bad("timeout", "%v is negative", o.Timeout)
	}
	if o.Headers < Draft11 || o.Headers > NoHeaders {
		bad("headers", "%d is no format", o.Headers)
	}
	if o.Undecided < RefuseUndecided || o.Undecided > AdmitUndecided {
		bad("undecided", "%d is no policy", o.Undecided)
	}
	return errors.Join(append(problems, o.CORS.check())...)
}

// newRule compiles a Rule. Without a Key, clients are the keys.
func (l *limiter) newRule(given Rule) (rule, error) {
	made := rule{Rule: given}
	if (given.Limit != "") == (given.Rule != nil) && given.Plan == nil ||
		given.Plan != nil && (given.Limit != "" || given.Rule != nil) {
		return made, optionError("", "has not exactly one of Limit, Rule and Plan")
	}
	if given.Missing < MissingShares || given.Missing > MissingUnlimited {
		return made, optionError("missing", "%d is no policy", given.Missing)
	}
	if given.Key == nil {
		made.Key = l.Client.Key
	}
	if given.Plan != nil {
		return made, nil
	}
	limits, err := given.rule()
	if err != nil {
		return made, err
	}
	made.fixed, err = l.newPolicies(limits)
	return made, err
}

// rule is the weir.Rule of a Rule without a Plan.
func (given *Rule) rule() (*weir.Rule, error) {
	switch {
	case given.Rule != nil:
		return given.Rule, nil
	case strings.Contains(given.Limit, "="):
		return weir.ParseRule(given.Limit)
	case given.Key != nil:
		return weir.ParseRule("key=" + given.Limit)
	}
	return weir.ParseRule("client=" + given.Limit)
}

func optionError(field, format string, values ...any) *weir.OptionError {
	return &weir.OptionError{Op: "httplimit", Field: field, Reason: fmt.Sprintf(format, values...)}
}

// inField names the option in an option error.
func inField(field string, err error) error {
	e, ok := err.(*weir.OptionError)
	if !ok {
		return err
	}
	if e.Field != "" {
		field += "." + e.Field
	}
	return &weir.OptionError{Op: e.Op, Field: field, Reason: e.Reason}
}

// name returns the name of the rule for logs.
func (r *rule) name() string {
	if r.fixed == nil {
		return "plan"
	}
	return r.fixed.rule.Name()
}
