// Package decide answers the callers of a daemon, in any protocol.
//
// A front decodes a request and finds out who asks. It makes requests of rules by name ([InForce.Rule]), or of rules that
// match attributes ([InForce.Config]), and asks [May]. Then it asks the [Desk] and encodes the answer:
//
//   - Do makes one call of the engine, and Each several. Made names the rule that paid (paid.go). Took notes the outcome of calls that take, and tries shadows and candidates.
//   - Told counts costs of finished work, even if too little is left. So do Do and Each, under rules that charge after the work (told.go).
//   - Estimated says how many units to hold, where a rule learns that from settlements (estimate.go).
//   - Judged notes what rules decided without the engine.
//   - Wait and Reserve have patience (wait.go), and Settle and Renew end a reservation or give it its life again (token.go).
//   - Hold and Commit count costs that are known afterwards (hold.go), and so does Report.
//   - Failed logs an error of the engine.
package decide

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/layer"
)

// Options configure a Desk.
type Options struct {
	Engine weir.Engine
	// Chains is the engine that also makes requests in place of refused ones (layer.Otherwise). Calls without such requests go to Engine,
	// in fewer steps. Default: such a layer over Engine.
	Chains weir.Engine
	Rules  []*weir.Rule  // as Use has them
	Config *rules.Config // as Use has it
	Log    *slog.Logger  // receives the errors of the engine
	// Beside is the engine of shadows and candidates. Default: Engine.
	Beside weir.Engine
	// Shadow has limits that callers bring refuse nothing, because all rules are shadows.
	Shadow bool
	// Fails returns why the engine does not decide, or "". Default: it always decides.
	Fails func() string
	// Patience bounds the time of each call of the engine, except those of waiting callers. Default: the context of the caller
	// bounds it.
	Patience time.Duration
	// Recorded, if not nil, learns of each decision on requests to take. It must not keep them or block.
	Recorded func(requests []weir.Request, allowed bool)
	// PaidBy, if not nil, learns of each request to take that a rule paid for in place of another.
	PaidBy func(asked, paid string)
	// Judged, if not nil, learns of each decision that rules in files made without the engine, and the reason.
	Judged func(ctx context.Context, rule string, allowed bool, reason rules.Reason)
	// Compared, if not nil, learns of each decision of a shadow or candidate, with that in force. The name is that of its limit: that of
	// the rule for a shadow.
	Compared func(name string, inForce, beside weir.Decision, err error)
	// Cleared, if not nil, learns of each key that a caller has cleared.
	Cleared func(who *auth.Identity, from string, q weir.Request)
	// Told, if not nil, is called with the outcome of the units of each cost that a caller reported after the work.
	Told func(rule string, units int64, what Told)
	// Secret returns what seals the tokens of reservations: the same in all daemons that honour them. Default: a random one.
	Secret func(context.Context) ([]byte, error)
	// Wait bounds waiting callers.
	Wait WaitOptions
}

// Desk decides. It is safe for concurrent use.
type Desk struct {
	options   Options
	engine    weir.Engine // within the patience
	chains    weir.Engine // that makes requests in place of refused ones, too
	force     atomic.Pointer[InForce]
	beside    *layer.Aside
	overrider overrider    // of the engine, or nil
	memory    *weir.Memory // the engine, unless others share it
	failures  RareLog
	capped    RareLog

	queue   waits
	waiting waiting
	holds   holds
	returns *enginekit.Repeater // of the holds whose engine failed
	doubts  doubts
}

// New returns a Desk.
func New(o Options) *Desk {
	if o.Chains == nil {
		var err error
		if o.Chains, err = layer.Otherwise(o.Engine); err != nil {
			o.Chains = o.Engine // which has such a layer, or belongs over it and refuses the requests
		}
	}
	d := &Desk{options: o, engine: o.Engine, chains: o.Chains, returns: newReturns()}
	beside := cmp.Or(o.Beside, o.Engine)
	if o.Patience > 0 {
		d.engine, d.chains, beside = weir.Wrap(o.Engine, d.patiently), weir.Wrap(o.Chains, d.patiently), weir.Wrap(beside, d.patiently)
	}
	if o.Secret == nil {
		own := []byte(rand.Text())
		d.options.Secret = func(context.Context) ([]byte, error) { return own, nil }
	}
	d.queue = newWaits(o.Chains, o.Wait, func(q weir.Request) weir.Request { return d.Overridden(d.present([]weir.Request{q}))[0] })
	d.beside = layer.NewAside(beside, 0, d.compared)
	d.holds.room.most = mostHeld
	d.overrider, _ = weir.Find[overrider](d.engine)
	d.memory, _ = weir.Find[*weir.Memory](d.engine)
	d.Use(o.Rules, o.Config)
	return d
}

// patiently makes a call of the engine within the patience.
func (d *Desk) patiently(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.options.Patience, errPatience)
	defer cancel()
	return next(ctx, call)
}

// within bounds the time of an ability of the engine beside its calls.
func (d *Desk) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.options.Patience == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, d.options.Patience, errPatience)
}

// errPatience says that the time of the engine ended, not that of its caller.
var errPatience error = outOfPatience{}

type outOfPatience struct{}

func (outOfPatience) Error() string     { return "decide: the engine did not decide in time" }
func (outOfPatience) Unavailable() bool { return true }

// Memory returns the engine that is in memory, or nil if others share the engine.
func (d *Desk) Memory() *weir.Memory { return d.memory }

// May returns what a caller lacks that may not ask for some requests, or nil. The token of a key asks for that key alone, and so for no
// requests that need none.
func May(who *auth.Identity, scope auth.Scope, requests []weir.Request) *auth.Denied {
	for i := range requests {
		if denied := mayAsk(who, scope, requests[i].Rule.Name(), requests[i].Key); denied != nil {
			return denied
		}
	}
	if who.Shown() != nil && len(requests) == 0 {
		denied := who.Deny(scope, "")
		return &denied
	}
	return nil
}

// mayAsk returns what a caller lacks that may not ask for a key of a rule, or nil.
func mayAsk(who *auth.Identity, scope auth.Scope, rule, key string) *auth.Denied {
	name, _, _ := strings.Cut(rule, "~")
	if who.MayAsk(scope, name, key) {
		return nil
	}
	denied := who.Deny(scope, name)
	return &denied
}

// KeyToken returns the text of a token.
func (d *Desk) KeyToken(ctx context.Context, t auth.KeyToken) (string, error) {
	secret, err := d.options.Secret(ctx)
	if err != nil {
		return "", uncounted{err}
	}
	return t.Text(secret), nil
}

// inFile returns the name that a rule has in its file, also for a shadow or candidate of it.
func inFile(rule *weir.Rule) string {
	name, _, _ := strings.Cut(rule.Name(), "~")
	return name
}

// Do makes a call.
func (d *Desk) Do(ctx context.Context, call weir.Call) (Made, error) {
	if call.Op == weir.OpReset {
		call.Requests = own(call.Requests)
	}
	if tells(&call) {
		made, err := d.tell(ctx, d.recordOf(call, false))
		d.tellBeside(nil, d.force.Load().besidesOf(call.Requests))
		return Made{Decision: made, On: call.Requests}, err
	}
	engine := d.engine
	for i := range call.Requests {
		if call.Requests[i].Otherwise != nil {
			engine = d.chains
		}
	}
	a, err := engine.Do(ctx, call)
	if err == nil && (call.Op == weir.OpRecord || call.Op == weir.OpReturn) {
		d.followed(call)
	}
	made := Made{Decision: a.Decision, On: call.Requests}
	if err == nil && engine == d.chains {
		made.find(call.Requests, a.Paid)
	}
	return made, err
}

// tells reports whether a call records a cost after the work (told.go).
func tells(call *weir.Call) bool {
	return call.Op == weir.OpRecord && slices.ContainsFunc(call.Requests, func(q weir.Request) bool { return q.Rule.ChargesAfter() })
}

// followed has shadows follow a call that counts costs or gives them back: they refuse neither.
func (d *Desk) followed(call weir.Call) {
	if shadows := shadowsOf(call.Requests); len(shadows) > 0 {
		d.tryBeside(nil, call.Op, shadows, weir.Decision{Allowed: true})
	}
}

// Each makes calls, and sets a result for each, unless it returns an error.
func (d *Desk) Each(ctx context.Context, calls []weir.Call, results []weir.Result) error {
	told, engine := false, d.engine
	for i := range calls {
		if Chained(calls[i].Requests) {
			engine = d.chains
		}
		if tells(&calls[i]) {
			told = true
			d.tellBeside(nil, d.force.Load().besidesOf(calls[i].Requests))
		}
	}
	each := engine.Each
	if told {
		each = func(ctx context.Context, calls []weir.Call, results []weir.Result) error {
			return d.tellEach(ctx, engine, calls, results)
		}
	}
	err := each(ctx, calls, results)
	for i := range calls {
		if op := calls[i].Op; err == nil && results[i].Err == nil && (op == weir.OpRecord || op == weir.OpReturn) && !tells(&calls[i]) {
			d.followed(calls[i])
		}
	}
	return err
}

// Reset clears keys. It leaves a line for each in the log, as changes on the admin port do, unless nothing was cleared.
func (d *Desk) Reset(ctx context.Context, who *auth.Identity, from string, requests ...weir.Request) error {
	err := d.engineOf(requests).Reset(ctx, own(requests)...)
	if err == nil || weir.WasCounted(err) != weir.CountedNo {
		for _, q := range requests {
			d.options.Log.Info("audit", "who", who.Name, "from", from, "what", "reset", "rule", q.Rule.Name(), "key", q.Key)
			if d.options.Cleared != nil {
				d.options.Cleared(who, from, q)
			}
		}
	}
	return err
}

// Took notes a decision on requests to take, and has shadows and candidates decide beside it. Those of rules that match
// attributes are given, except those that the caller may not ask for; named rules have their candidates.
func (d *Desk) Took(who *auth.Identity, requests, beside []weir.Request, inForce Made) {
	if d.Recorded(requests, inForce.Allowed); inForce.PaidBy != "" {
		d.replaced(requests, inForce)
	}
	if len(beside) == 0 {
		beside = d.force.Load().besidesOf(requests)
	} else {
		beside = append(beside, shadowsOf(requests)...)
	}
	if len(beside) > 0 {
		d.tryBeside(who, weir.OpTake, beside, inForce.Decision)
	}
}

// Recorded notes a decision on requests that are taken or counted.
func (d *Desk) Recorded(requests []weir.Request, allowed bool) {
	if d.options.Recorded != nil && len(requests) > 0 {
		d.options.Recorded(requests, allowed)
	}
}

// replaced notes who paid in place of others.
func (d *Desk) replaced(asked []weir.Request, made Made) {
	for i := range asked {
		if d.options.PaidBy != nil && made.PaidBy != "" && !sameKey(&asked[i], &made.On[i]) {
			d.options.PaidBy(asked[i].Rule.Name(), made.On[i].Rule.Name())
		}
	}
}

// Judged returns the decision of rules that ask no engine: one exempts or refuses the request, or none decides. It notes the
// decision if the caller takes.
func (d *Desk) Judged(ctx context.Context, who *auth.Identity, o *rules.Outcome, takes bool) weir.Decision {
	made := weir.Decision{Allowed: o.Verdict == rules.Allow}
	if o.Rule != nil {
		made.Rule = o.Rule.Name
	}
	if !made.Allowed {
		made.RetryAfter, made.ResetAfter = weir.Never, weir.Never
	}
	if takes {
		d.NoteJudged(ctx, made.Rule, made.Allowed, o.Reason)
		d.Took(who, nil, o.Beside, Made{Decision: made})
	}
	return made
}

// NoteJudged notes a decision that rules made without the engine.
func (d *Desk) NoteJudged(ctx context.Context, rule string, allowed bool, reason rules.Reason) {
	if d.options.Judged != nil {
		d.options.Judged(ctx, rule, allowed, reason)
	}
}

// Failed logs an error of the engine, rarely. An outage is logged by the guard, once, and fails more than decisions. A caller
// that has left is no failure: left reports that, and no answer reaches it.
func (d *Desk) Failed(ctx context.Context, err error, where ...any) (left bool) {
	if layer.Left(ctx, err) {
		d.options.Log.Debug("a caller left, or its deadline ended, before the decision", append(where, "error", err)...)
		return true
	}
	if _, outage := errors.AsType[*layer.OutageError](err); !outage && d.EngineFails() == "" {
		d.failures.Warn(d.options.Log, "the engine could not decide", append(where, "error", err)...)
	}
	return false
}

// EngineFails returns the reason why the engine does not decide, or "".
func (d *Desk) EngineFails() string {
	if d.options.Fails == nil {
		return ""
	}
	return d.options.Fails()
}

// Patience returns the bound on a call of the engine, or 0.
func (d *Desk) Patience() time.Duration { return d.options.Patience }
