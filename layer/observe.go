package layer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// ObserveOptions configure an Observe.
type ObserveOptions struct {
	// Decided is called after each decision, refusal and failure, on the goroutine of the caller. It is required, and must
	// be fast, because the caller waits for it. If it panics, the caller still gets the answer.
	Decided func(ctx context.Context, o Observation)
	// Sample n observes one of n calls, chosen at random. Observation.Calls is the number that the observation stands for.
	// Refusals, errors and calls that take a key over a threshold are always observed. Default: 1, every call.
	Sample int
}

// Observation is one request that an engine has decided, or failed to. A call of several requests makes one observation,
// for the binding request. An OpEach makes one for each of its calls.
type Observation struct {
	Op       weir.Op
	Rule     string // rule of the binding request; after an error, of the first request
	Key      string // as Rule
	Limit    string // the text of the limit that refused; empty if nothing was refused
	Cost     int64  // cost of the binding request
	Decision weir.Decision
	Err      error
	Left     bool // Err is the end of the caller's own context: see Left
	// Threshold is the highest of 80 and 100 per cent of the limit that the key has reached by this decision, or 0.
	Threshold int
	Began     time.Time
	Took      time.Duration
	Calls     int // calls that this one stands for: ObserveOptions.Sample, or 1
	// Requests are all requests of the call, and those that paid in place of others. They are valid until Decided returns.
	Requests []weir.Request
}

// Result is admitted, refused, away, left or error, for metrics. A call is away if an engine could not be reached, and left if
// its caller left or had no more time, which is no failure of an engine.
func (o *Observation) Result() string {
	switch {
	case weir.Unavailable(o.Err):
		return "away"
	case o.Left:
		return "left"
	case o.Err != nil:
		return "error"
	case o.Decision.Allowed:
		return "admitted"
	}
	return "refused"
}

// Observe reports what an engine decides. Modules promlimit and otellimit make metrics and spans of it. Without a function
// it is the engine itself.
func Observe(e weir.Engine, options ObserveOptions) (weir.Engine, error) {
	if err := checkOver(e, observes); err != nil {
		return nil, err
	}
	if options.Sample < 0 {
		return nil, optionError(observes, "sample", "%d is negative", options.Sample)
	}
	if options.Decided == nil {
		return e, nil
	}
	options.Sample = max(options.Sample, 1)
	o := &observer{below: e, options: options}
	o.engine = weir.Wrap(e, o.around)
	return o, nil
}

type observer struct {
	engine
	below   weir.Engine
	options ObserveOptions
}

// Unwrap returns the engine below, for weir.Find.
func (o *observer) Unwrap() weir.Engine { return o.below }

func (o *observer) rank() rank { return observes }

func (o *observer) around(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
	began := time.Now()
	a, err := next(ctx, call)
	took := time.Since(began)
	for i := range enginekit.Decisions(&call) {
		c, d, _, err := enginekit.DecisionAt(&call, &a, err, i)
		if c.Op == weir.OpReset || c.Op == weir.OpReturn || errors.Is(err, weir.ErrRequest) || keepsWaiting(c, d, err) {
			continue
		}
		seen := Observation{Op: c.Op, Decision: *d, Err: err, Left: Left(ctx, err), Began: began, Took: took}
		seen.complete(enginekit.RequestsAt(&call, &a, i), max(a.Times, 1))
		o.observe(ctx, &seen)
	}
	return a, err
}

// Left reports whether an error of a call says only that the caller left, or that its own deadline ended, so that no engine has
// failed: it is the end of the context, and the engine was not unavailable. A context that bounds the engine rather than the
// caller ends with a cause that is Unavailable: see [context.WithTimeoutCause].
func Left(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) && !weir.Unavailable(err) && !weir.Unavailable(context.Cause(ctx))
}

// keepsWaiting reports whether a caller that waits was refused, and asks again: see [weir.Call.Waits].
func keepsWaiting(c *weir.Call, d *weir.Decision, err error) bool {
	return c.Waits && err == nil && !d.Allowed
}

// Observed returns the observation of a call that began at an instant. It is for fronts, which observe a request once although
// it may wait and so make several calls.
func Observed(call weir.Call, a weir.Answer, err error, began time.Time) Observation {
	seen := Observation{Op: call.Op, Decision: a.Decision, Err: err, Began: began, Took: time.Since(began)}
	seen.complete(enginekit.RequestsAt(&call, &a, 0), max(a.Times, 1))
	return seen
}

// complete completes an observation of requests that were taken the given number of times.
func (o *Observation) complete(requests []weir.Request, times int64) {
	if o.Calls = 1; len(requests) == 0 || requests[0].Rule == nil {
		return
	}
	d := &o.Decision
	q := &requests[enginekit.Binding(d, requests)]
	o.Rule, o.Key, o.Cost, o.Requests = q.Rule.Name(), q.Key, max(q.Cost, 0)*times, requests // what was taken several times fits a limit
	takes := o.Op != weir.OpPeek
	switch {
	case o.Err != nil:
	case !d.Allowed:
		if limits := *enginekit.Keep(q.Rule, textsOf); int(d.RefusedBy) < len(limits) { // an engine of another author may err
			o.Limit = limits[d.RefusedBy]
		}
		o.Threshold = 100
	case takes && reached(d.Limit-d.Remaining, d.Limit, 100):
		o.Threshold = 100
	case takes && reached(d.Limit-d.Remaining, d.Limit, 80) && !reached(d.Limit-d.Remaining-o.Cost, d.Limit, 80):
		o.Threshold = 80
	}
}

// observe reports an observation. It reports one in n of the ordinary ones.
func (o *observer) observe(ctx context.Context, seen *Observation) {
	if seen.Rule == "" {
		return
	}
	if seen.Err == nil && seen.Threshold == 0 && o.options.Sample > 1 {
		if seen.Calls = o.options.Sample; rand.IntN(o.options.Sample) != 0 {
			return
		}
	}
	defer func() { _ = recover() }()
	o.options.Decided(ctx, *seen)
}

// textsOf returns the texts of the limits of a rule.
func textsOf(r *weir.Rule) *[]string {
	var texts []string
	for _, limit := range r.Limits() {
		texts = append(texts, limit.String())
	}
	return &texts
}

// reached reports whether used units are at least a percentage of a limit.
func reached(used, limit int64, percent int64) bool {
	return limit > 0 && limit < weir.MaxCount && min(max(used, 0), limit)*100 >= limit*percent
}
