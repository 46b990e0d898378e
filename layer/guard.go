package layer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// errBarred is the cause while no failure is known.
var errBarred = errors.New("too many calls of it hang")

// Guarded is an engine with a Guard. It is safe for concurrent use.
type Guarded struct {
	engine
	below    weir.Engine
	next     weir.Next
	options  GuardOptions
	clock    clock
	punctual bool // the engine ends its calls in time
	breaker  breaker
	cause    atomic.Pointer[failed]
	detached detached
	trips    trips
	changes  changes
	local    local
	owed     owed
	counts   guardCounts
}

// failed is a failure of the engine.
type failed struct{ err error }

type guardCounts struct {
	failures, denied, allowed, local, refused, opened, lost, recorded atomic.Uint64
}

// Guard bounds each decision of an engine, and answers by a policy while the engine is away: while its calls fail, come
// too late or hang. It is for an engine on a network.
//
// A circuit breaker opens after 5 failures in a row, or when half of at least 20 calls within a second fail. If all of them
// came too late, they must be spread over 100 ms, because a busy machine makes many calls late at once. Then the policy
// answers at once, one call each 200 ms tries the engine, and 3 of these that succeed in a row close it.
//
// Units admitted under Local are recorded at the engine when it is back. Reservations of the engine are settled there,
// if necessary later, and those of the policy in process. Call Close to end the work in the background.
func Guard(e weir.Engine, options GuardOptions) (*Guarded, error) {
	if err := errors.Join(checkOver(e, guards), options.check()); err != nil {
		return nil, err
	}
	options.Peers, options.Rules = max(options.Peers, 1), maps.Clone(options.Rules)
	options.Deadline = cmp.Or(options.Deadline, defaultDeadline)
	options.MaxKeys = cmp.Or(options.MaxKeys, defaultLocalKeys)
	options.Logger = cmp.Or(options.Logger, slog.Default())
	says, ok := e.(interface{ KeepsDeadlines() bool }) // not of an engine below: a function between may block
	g := &Guarded{below: e, next: e.Do, options: options, clock: clockOf(e), punctual: ok && says.KeepsDeadlines()}
	g.engine = weir.Wrap(e, g.around)
	g.detached.init()
	g.local.init(options, g.clock)
	g.owed.init(g)
	return g, nil
}

// Unwrap returns the engine below, for weir.Find.
func (g *Guarded) Unwrap() weir.Engine { return g.below }

func (g *Guarded) rank() rank { return guards }

// Close ends the work in the background. Units that are not recorded or settled by then are lost.
func (g *Guarded) Close() { g.owed.close() }

// around makes a call within the deadline, or answers by the policy.
func (g *Guarded) around(ctx context.Context, call weir.Call, _ weir.Next) (weir.Answer, error) {
	if call.Op == weir.OpReserve {
		return weir.Kit.Reserve(ctx, g, call) // so that takes and settlements pass here
	}
	if call.Op == weir.OpEach {
		if call.Each == nil {
			return weir.Answer{}, nil
		}
		if err := weir.Kit.CheckEach(call.Each.Calls, call.Each.Results); err != nil {
			return weir.Answer{}, err
		}
	}
	if call.Within <= 0 && ctx.Err() != nil { // the engine need not look at it, and could hang
		return weir.Answer{}, cmp.Or(checked(&call), enginekit.CannotDecide(call.Op, ctx.Err()))
	}
	if call.Lease != 0 && g.local.gave(&call) {
		return g.settleHere(call)
	}
	p := g.breaker.enter()
	if p == barred {
		return g.instead(call, weir.CountedNo, g.lastFailure())
	}
	a, err := g.ask(ctx, call, p, g.options.Deadline, g.next)
	if err == nil && call.Op < weir.OpReset {
		return a, nil
	}
	return g.answered(call, a, err)
}

// answered passes an answer of the engine on, or has the policy answer decisions that failed.
func (g *Guarded) answered(call weir.Call, a weir.Answer, err error) (weir.Answer, error) {
	switch {
	case call.Op == weir.OpEach && err == nil:
		for i := range call.Each.Results {
			if r := &call.Each.Results[i]; !ofRequest(r.Err) {
				a, err := g.failed(call.Each.Calls[i], r.Err)
				*r = weir.Result{Decision: a.Decision, Reservation: a.Reservation, Taken: a.Taken, Err: err}
			}
		}
	case call.Op == weir.OpEach && !ofRequest(err):
		return a, enginekit.DecideEach(call.Each, func(c weir.Call) (weir.Answer, error) { return g.failed(c, err) })
	case err == nil && call.Op == weir.OpReset:
		g.local.forget(call)
	case !ofRequest(err):
		return g.failed(call, err)
	}
	return a, err
}

// failed has the policy answer one decision that failed at the engine.
func (g *Guarded) failed(call weir.Call, err error) (weir.Answer, error) {
	if bad := checked(&call); bad != nil { // which the engine has not checked
		return weir.Answer{}, bad
	}
	counted := weir.WasCounted(err)
	if isAfter(&call) {
		return g.keep(call, counted, err)
	}
	if counted != weir.CountedNo {
		switch call.Op {
		case weir.OpRecord, weir.OpReturn: // a second one could count twice
			g.owed.release(call)
			return weir.Answer{}, &OutageError{call.Op, counted, err}
		case weir.OpTake:
			if call.Identity == "" { // with one it can be asked again
				g.owed.release(call)
			}
		}
	}
	return g.instead(call, counted, err)
}

// ofRequest reports whether an error says nothing about the engine: there is none, or no engine could decide the request.
func ofRequest(err error) bool {
	return err == nil || errors.Is(err, weir.ErrRequest) || errors.Is(err, weir.ErrLimit) || errors.Is(err, weir.ErrNoRoom)
}

// outcomeOf judges a call, and returns the error that it judges by. A failure that is not the engine's, by its own
// account, bars no other call.
func outcomeOf(call *weir.Call, err error) (outcome, error) {
	if err != nil {
		return outcomeOfError(err), err
	}
	if call.Op == weir.OpEach {
		for i := range call.Each.Results {
			if err := call.Each.Results[i].Err; !ofRequest(err) {
				return outcomeOfError(err), err
			}
		}
	}
	return success, nil
}

func outcomeOfError(err error) outcome {
	var says interface{ Unavailable() bool }
	switch {
	case ofRequest(err):
		return neither
	case errors.Is(err, context.DeadlineExceeded):
		return late
	case errors.As(err, &says) && !says.Unavailable():
		return neither
	}
	return failure
}

// sampled n measures the round trip of one of n calls.
const sampled = 32

// ask makes a call that the breaker has let pass, within the time.
func (g *Guarded) ask(ctx context.Context, call weir.Call, p pass, within time.Duration, next weir.Next) (a weir.Answer, err error) {
	hurried := false
	if call.Op == weir.OpEach {
		within *= time.Duration(1 + len(call.Each.Calls)/128)
	}
	if call.Within > 0 && call.Within < within {
		within = call.Within
	} else if until, ok := ctx.Deadline(); ok && call.Within <= 0 {
		if left := time.Until(until); left < within {
			hurried, within = left < within/2, max(left, 1)
		}
	}
	measured := rand.Uint32()%sampled == 0 || g.trips.measured.Load() < tripsKnown || p == probes
	var began time.Time
	if measured {
		began = time.Now()
	}
	a, err = g.within(ctx, call, within, next)
	o, cause := outcomeOf(&call, err)
	switch {
	case o == success && measured:
		g.trips.add(g, time.Since(began))
	case o == late && hurried:
		o = neither // the caller had too little time
	case o == late && p == probes:
		g.measure(call)
	}
	if o == failure || o == late {
		g.counts.failures.Add(1)
		g.cause.Store(&failed{cause})
	}
	g.breaker.ended(p, o, g.changed)
	return a, err
}

// within makes a call that ends in time.
func (g *Guarded) within(ctx context.Context, call weir.Call, time time.Duration, next weir.Next) (weir.Answer, error) {
	if g.punctual {
		call.Within = time
		return guarded(ctx, call, next)
	}
	return g.elsewhere(ctx, call, time, next)
}

// guarded makes a call, and returns an error if the engine panics.
func guarded(ctx context.Context, call weir.Call, next weir.Next) (a weir.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			a, err = weir.Answer{}, fmt.Errorf("layer: %s: the engine panicked: %v", call.Op, p)
		}
	}()
	return next(ctx, call)
}

// Try makes a call that no policy answers, and judges the engine by its outcome. A program without traffic learns from
// it that the engine has gone or come back. Unlike in a decision, every failure counts as one of the engine.
//
// While the engine is away, Try returns its last failure unless another try is due.
func (g *Guarded) Try(ctx context.Context, call weir.Call) error {
	p := g.breaker.enter()
	if p == barred {
		return g.lastFailure()
	}
	_, err := g.ask(ctx, call, p, g.options.Deadline, func(ctx context.Context, call weir.Call) (weir.Answer, error) {
		a, err := g.next(ctx, call)
		if !ofRequest(err) {
			err = tryError{err}
		}
		return a, err
	})
	return err
}

// tryError is the failure of a call of Try.
type tryError struct{ error }

func (e tryError) Unwrap() error     { return e.error }
func (e tryError) Unavailable() bool { return true }

func (g *Guarded) lastFailure() error {
	if f := g.cause.Load(); f != nil {
		return f.err
	}
	return errBarred
}

// changed tells that the engine has gone or come back. The breaker calls it under its lock, so in order.
func (g *Guarded) changed(away bool) {
	change := GuardChange{Away: away, At: time.Now()}
	if away {
		g.counts.opened.Add(1)
		change.Cause = g.lastFailure()
	}
	g.changes.add(g, change)
}
