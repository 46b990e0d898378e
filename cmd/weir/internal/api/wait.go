package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// WaitOptions bound waiting callers. A zero field has its default.
type WaitOptions struct {
	Longest time.Duration // the longest patience of a caller. Default: DefaultWait
	Callers int           // waiting at a time. Default: DefaultWaiting
	// NoBooking has all callers ask: see pace.QueueOptions.
	NoBooking bool
}

// The defaults of WaitOptions.
const (
	DefaultWait    = time.Minute
	DefaultWaiting = 2048
)

// answerSlack is the time that a client has to read an answer after its wait.
const answerSlack = 30 * time.Second

// ErrStopping ends the waits of a stopping daemon.
var ErrStopping = errors.New("the daemon is stopping")

// waits are what the paths wait, reserve, settle and renew share.
type waits struct {
	queue   *pace.Queue
	waiting *waiting
	large   *places // of waiting callers with more than waitingBytes of requests
	longest time.Duration
	stopped context.Context // ends when the daemon stops
	stop    context.CancelFunc
}

func newWaits(engine weir.Engine, o WaitOptions, resolve func(weir.Request) weir.Request) *waits {
	callers := orDefault(o.Callers, DefaultWaiting)
	queue, _ := pace.NewQueue(engine, pace.QueueOptions{Queue: callers, Resolve: resolve, NoBooking: o.NoBooking}) // fails only for a negative bound
	w := &waits{
		queue:   queue,
		waiting: &waiting{},
		large:   &places{most: callers},
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
	asker
	w      http.ResponseWriter
	r      *http.Request
	secret []byte // that seals a token
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
		var err error
		if c.secret, err = a.secret(r.Context()); err != nil {
			a.fail(w, r, err)
			return
		}
		c.answerWith(c.hold)
	})
}

// serveWait reads a request with a patience and serves it unless the daemon stops.
func (a *API) serveWait(w http.ResponseWriter, r *http.Request, usual time.Duration, serve func(*waitCall)) {
	c := &waitCall{call: newCall(), asker: asker{api: a, client: r.Context(), patience: usual}, w: w, r: r}
	defer c.free()
	if p := a.read(c.call, w, r, form{patience: &c.patience}); p != nil {
		writeProblem(w, p)
		return
	}
	c.asks = c.requests
	c.extend = func(until time.Time) {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(until) // the server reads, to notice that the client goes away
		_ = control.SetWriteDeadline(until)
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
	if got, why, err := c.get(ask); err != nil {
		c.refuse(why, err)
	} else {
		c.respond(got)
	}
}

// respond answers with a decision, and with a token if there is something to hold.
func (c *waitCall) respond(got granted) {
	lease, token := c.force.leases.shortest(c.requests), ""
	if got.hold != nil && got.decision.Allowed {
		token, lease = c.api.handOver(c.secret, got.hold, c.requests)
	}
	if c.api.asked != nil {
		c.api.asked(c.requests, got.decision.Allowed)
	}
	c.answer = c.force.appendMessage(appendDecision(c.answer, got.decision, lease, token), got.decision)
	c.answer = c.force.quotas.appendReset(c.answer, got.decision, c.requests)
	writeJSON(c.w, c.answer)
}

// refuse answers a call that took nothing.
func (c *waitCall) refuse(why reason, err error) {
	switch why {
	case reasonLeft: // no client reads an answer
	case reasonStop:
		writeProblem(c.w, stoppingProblem(ofEngine(err)))
	case reasonFull:
		c.api.noRoom.warn(c.api.log, "refused a caller: too many wait, or their requests are too large; --max-waiting bounds them")
		writeProblem(c.w, &problem{status: http.StatusServiceUnavailable, detail: "too many callers wait, or their requests are too large, and nothing was taken; ask again, or raise weir serve --max-waiting"})
	default:
		c.api.failWithin(c.w, c.r, err, max(c.patience, c.api.patience))
	}
}
