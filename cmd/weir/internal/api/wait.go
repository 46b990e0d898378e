package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// WaitOptions bound waiting callers and reservations. A zero field has its default.
type WaitOptions struct {
	Longest time.Duration // the longest patience of a caller. Default: DefaultWait
	Callers int           // waiting at a time. Default: DefaultWaiting
	Tokens  int           // open reservations at a time. Default: DefaultTokens
}

// The defaults of WaitOptions.
const (
	DefaultWait    = time.Minute
	DefaultWaiting = 2048
	DefaultTokens  = 65536
)

// answerSlack is the time that a client has to read an answer after its wait.
const answerSlack = 30 * time.Second

// errStopping ends the waits of a stopping daemon.
var errStopping = errors.New("the daemon is stopping")

// waits are what the paths wait, reserve, settle and renew share.
type waits struct {
	queue   *pace.Queue
	waiting *waiting
	large   *places // of waiting callers with more than waitingBytes of requests
	tokens  *tokens
	longest time.Duration
	stopped context.Context // ends when the daemon stops
	stop    context.CancelFunc
}

func newWaits(engine weir.Engine, o WaitOptions) *waits {
	callers := orDefault(o.Callers, DefaultWaiting)
	queue, _ := pace.NewQueue(engine, pace.QueueOptions{Queue: callers}) // fails only for a negative bound
	w := &waits{
		queue:   queue,
		waiting: &waiting{},
		large:   &places{most: callers},
		tokens:  newTokens(orDefault(o.Tokens, DefaultTokens)),
		longest: o.Longest,
	}
	if w.longest <= 0 {
		w.longest = DefaultWait
	}
	w.stopped, w.stop = context.WithCancel(context.Background())
	return w
}

func orDefault(n, usual int) int {
	if n <= 0 {
		return usual
	}
	return n
}

// waitCall is one request to wait or to reserve.
type waitCall struct {
	*call
	api      *API
	w        http.ResponseWriter
	r        *http.Request
	patience time.Duration
	visit    *visit // nil without patience
	places   int    // claimed for a reservation that has no token yet
}

// granted is what a call took.
type granted struct {
	decision weir.Decision
	undo     func(context.Context) error
	hold     holder // nil unless it was reserved
}

// wait takes all requests as soon as the engine admits them, and answers then.
func (a *API) wait(w http.ResponseWriter, r *http.Request) {
	a.serveWait(w, r, a.waits.longest, func(c *waitCall) {
		if c.force.leases.shortest(c.requests) > 0 {
			writeProblem(w, badField(fieldRule, "holds slots, which a wait could not release; POST /v1/reserve waits for them and answers with a token"))
			return
		}
		c.answerWith(c.take)
	})
}

// reserve takes all requests, after a wait if the caller has patience, and answers with a token.
func (a *API) reserve(w http.ResponseWriter, r *http.Request) {
	a.serveWait(w, r, 0, func(c *waitCall) {
		places := &a.waits.tokens.places
		if c.places = places.claim(1 + sizeOf(c.requests)/tokenBytes); c.places == 0 {
			a.noTokens.warn(a.log, "refused a reservation: too many are open, or they are too large; --max-tokens bounds them")
			writeProblem(w, &problem{status: http.StatusServiceUnavailable, detail: "too many reservations are open, or they are too large, and nothing was taken; settle some, or raise weir serve --max-tokens"})
			return
		}
		defer func() { places.leave(c.places) }()
		c.answerWith(c.hold)
	})
}

// serveWait reads a request with a patience and serves it unless the daemon stops.
func (a *API) serveWait(w http.ResponseWriter, r *http.Request, usual time.Duration, serve func(*waitCall)) {
	c := &waitCall{call: newCall(), api: a, w: w, r: r, patience: usual}
	defer c.free()
	if p := a.read(c.call, w, r, form{patience: &c.patience}); p != nil {
		writeProblem(w, p)
		return
	}
	if a.waits.stopped.Err() != nil {
		writeProblem(w, stoppingProblem(nil))
		return
	}
	c.patience = min(c.patience, a.waits.longest)
	serve(c)
}

func stoppingProblem(err error) *problem {
	return &problem{status: http.StatusServiceUnavailable, failed: err,
		detail: "the daemon is stopping, and the caller was not admitted; wait again, at another instance or after a second" + alsoCounted[weir.WasCounted(err)]}
}

// answerWith asks for the requests, and answers with what came of it.
func (c *waitCall) answerWith(ask func(context.Context) (granted, error)) {
	ctx, end := c.begin()
	defer end()
	got, err := c.inMemory(ctx, ask)
	if err == nil && got.decision.Allowed && c.r.Context().Err() != nil {
		c.undo(got)
		err = c.r.Context().Err()
	}
	if err != nil {
		c.refuse(ctx, err)
		return
	}
	c.api.health.succeeded()
	c.finish(endOf(got.decision))
	c.respond(got)
}

// inMemory asks for the requests, unless they may wait and there is no memory for them.
func (c *waitCall) inMemory(ctx context.Context, ask func(context.Context) (granted, error)) (granted, error) {
	large := c.api.waits.large
	n := sizeOf(c.requests) / waitingBytes
	if c.patience == 0 || n == 0 {
		return ask(ctx)
	}
	if n = large.claim(n); n == 0 {
		return granted{}, weir.ErrQueueFull
	}
	defer large.leave(n)
	return ask(ctx)
}

// endOf returns the end of a wait with this decision.
func endOf(d weir.Decision) reason {
	switch {
	case d.Allowed:
		return ended
	case d.RetryAfter == weir.Never:
		return reasonNever
	}
	return reasonPatience
}

// begin returns the context of the wait: it ends with the caller's patience, with its connection, and with the
// daemon. It gives the connection the time of the wait beyond its usual timeouts.
func (c *waitCall) begin() (context.Context, context.CancelFunc) {
	if c.patience == 0 {
		return c.api.withPatience(c.r.Context())
	}
	c.visit = c.api.waits.waiting.begin(c.requests)
	control := http.NewResponseController(c.w)
	until := time.Now().Add(c.patience)
	_ = control.SetReadDeadline(until.Add(answerSlack)) // the server reads, to notice that the client goes away
	_ = control.SetWriteDeadline(until.Add(answerSlack))
	ctx, cancel := context.WithDeadline(c.r.Context(), until)
	ctx, stop := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(c.api.waits.stopped, func() { stop(errStopping) })
	return ctx, func() {
		unhook()
		stop(nil)
		cancel()
	}
}

// take takes the requests without a reservation.
func (c *waitCall) take(ctx context.Context) (granted, error) {
	engine := c.api.engine
	take := c.api.waits.queue.Wait
	if c.patience == 0 {
		take = engine.Take
	}
	d, err := take(ctx, c.requests...)
	return granted{decision: d, undo: func(ctx context.Context) error {
		_, err := engine.Return(ctx, c.requests...)
		return err
	}}, err
}

// hold takes the requests with a reservation.
func (c *waitCall) hold(ctx context.Context) (granted, error) {
	if c.patience == 0 {
		r, err := c.api.engine.Reserve(ctx, c.requests...)
		if err != nil {
			_ = r.Cancel(ctx) // releases slots that may have been taken
			return granted{}, err
		}
		return granted{r.Decision, r.Cancel, r}, nil
	}
	r, err := c.api.waits.queue.Acquire(ctx, c.requests...)
	if err != nil {
		return granted{}, err
	}
	return granted{r.Decision, r.Cancel, r}, nil
}

// undo gives back what was taken for a client that has gone.
func (c *waitCall) undo(got granted) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), undoWithin)
	defer cancel()
	if err := got.undo(ctx); err != nil {
		c.api.failures.warn(c.api.log, "units of a client that went away stay spent", "path", c.r.URL.Path, "error", err)
	}
}

// respond answers with a decision, and with a token if there is something to hold.
func (c *waitCall) respond(got granted) {
	lease, token := c.force.leases.shortest(c.requests), ""
	if got.hold != nil && got.decision.Allowed {
		if lease == 0 {
			lease = tokenLife
		}
		token = c.api.waits.tokens.add(&held{holder: got.hold, requests: len(c.requests), slots: weir.Call{Op: weir.OpRecord, Requests: c.slots(), Lease: got.hold.Lease()}, places: c.places, life: lease})
		c.places = 0
	}
	if c.api.asked != nil {
		c.api.asked(c.requests, got.decision.Allowed)
	}
	c.answer = c.force.appendMessage(appendDecision(c.answer, got.decision, lease, token), got.decision)
	writeJSON(c.w, c.answer)
}

// finish counts the end of the wait.
func (c *waitCall) finish(why reason) {
	if c.visit != nil {
		c.visit.end(why)
	}
}

// refuse answers a call that took nothing.
func (c *waitCall) refuse(ctx context.Context, err error) {
	why := c.why(ctx, err)
	c.finish(why)
	switch why {
	case reasonLeft: // no client reads an answer
	case reasonStop:
		writeProblem(c.w, stoppingProblem(ofEngine(err)))
	case reasonFull:
		c.api.noRoom.warn(c.api.log, "refused a caller: too many wait, or their requests are too large; --max-waiting bounds them")
		writeProblem(c.w, &problem{status: http.StatusServiceUnavailable, detail: "too many callers wait, or their requests are too large, and nothing was taken; ask again, or raise weir serve --max-waiting"})
	case reasonNever, reasonPatience:
		c.describe(err)
	default:
		c.api.failWithin(c.w, c.r, err, max(c.patience, c.api.patience))
	}
}

// why returns the reason for an error of the queue or of the engine.
func (c *waitCall) why(ctx context.Context, err error) reason {
	var tooLong *weir.WaitError
	switch {
	case c.r.Context().Err() != nil:
		return reasonLeft
	case context.Cause(ctx) == errStopping && errors.Is(err, context.Canceled):
		return reasonStop
	case errors.Is(err, weir.ErrNever):
		return reasonNever
	case errors.Is(err, weir.ErrQueueFull):
		return reasonFull
	case errors.As(err, &tooLong):
		return reasonPatience
	case c.patience > 0 && errors.Is(err, context.DeadlineExceeded) && !weir.MayHaveCounted(ofEngine(err)):
		return reasonPatience
	}
	return reasonEngine
}

// ofEngine returns an error that an engine has returned, and nil for one of the queue, which has taken nothing.
func ofEngine(err error) error {
	var said interface{ WasCounted() weir.Counted }
	if errors.As(err, &said) {
		return err
	}
	return nil
}

// describe answers a wait that was refused or that has ended with the present decision. The retry after is at least the
// wait that the queue has named.
func (c *waitCall) describe(err error) {
	ctx, cancel := context.WithTimeout(c.r.Context(), undoWithin)
	defer cancel()
	d, failed := c.api.engine.Peek(ctx, c.requests...)
	if failed != nil {
		c.api.fail(c.w, c.r, failed)
		return
	}
	d.Allowed = false // also if only earlier callers are in the way, and no limit refuses
	if tooLong, ok := errors.AsType[*weir.WaitError](err); ok {
		d.RetryAfter = max(d.RetryAfter, tooLong.Need)
	}
	c.respond(granted{decision: d})
}

// slots returns the requests of a call for slots alone.
func (c *waitCall) slots() (slots []weir.Request) {
	for _, q := range c.requests {
		if alone := q.Rule.Held(); alone != nil && q.Cost > 0 {
			q.Rule = alone
			slots = append(slots, q)
		}
	}
	return slots
}
