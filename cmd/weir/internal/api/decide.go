package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// decideBy serves take, peek, record and return.
func decideBy(op weir.Op) func(*API, http.ResponseWriter, *http.Request, asker) {
	return func(a *API, w http.ResponseWriter, r *http.Request, who asker) {
		c := newCall()
		defer c.free()
		if p := a.read(c, w, r, who, form{attributes: op != weir.OpReturn, batch: true}); p != nil {
			writeProblem(w, p)
			return
		}
		if t := who.Shown(); t != nil {
			c.force.OfPlan(c.requests, t.Plan)
		}
		if c.apart {
			a.decideApart(op, c, w, r, who)
			return
		}
		made, err := a.decide(r.Context(), op, c, who)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		a.tell(c, made, decide.Lease(made.On), "")
		if op == weir.OpPeek && len(c.outcome.Requests) == 0 {
			c.answer = appendMissed(c.answer, c.force, c.requests)
		}
		writeJSON(w, c.answer)
	}
}

// decide makes one decision on all requests.
func (a *API) decide(ctx context.Context, op weir.Op, c *call, who asker) (decide.Made, error) {
	if c.outcome.Verdict != rules.Ask {
		return decide.Made{Decision: a.desk.Judged(ctx, who.Identity, &c.outcome, op == weir.OpTake)}, nil
	}
	if op == weir.OpRecord && len(c.outcome.Requests) > 0 {
		d, err := a.desk.Record(ctx, who.Identity, c.requests, c.outcome.Beside)
		return decide.Made{Decision: d, On: c.requests}, err
	}
	made, err := a.desk.Do(ctx, weir.Call{Op: op, Requests: c.requests})
	if err == nil && op == weir.OpTake {
		a.desk.Took(who.Identity, c.requests, c.outcome.Beside, made)
	}
	return made, err
}

// decideApart makes one decision for each request, all in one call of the engine. The answers have the order of the requests.
// A problem with one of them stands in its place.
func (a *API) decideApart(op weir.Op, c *call, w http.ResponseWriter, r *http.Request, who asker) {
	for i := range c.requests {
		c.calls = append(c.calls, weir.Call{Op: op, Requests: c.requests[i : i+1 : i+1]})
		c.results = append(c.results, weir.Result{})
	}
	if err := a.desk.Each(r.Context(), c.calls, c.results); err != nil {
		a.fail(w, r, err)
		return
	}
	c.answer = append(c.answer, `{"decisions":[`...)
	for i, result := range c.results {
		if result.Err != nil {
			c.answer = appendProblem(c.answer, a.problemOf(r, result.Err, a.desk.Patience()))
		} else {
			asked, made := c.calls[i].Requests, decide.MadeOf(&c.calls[i], &c.results[i])
			if op == weir.OpTake {
				a.desk.Took(who.Identity, asked, nil, made)
			}
			a.tell(c, made, decide.Lease(made.On), "")
			if op == weir.OpPeek {
				c.answer = appendMissed(c.answer, c.force, asked)
			}
		}
		c.answer[len(c.answer)-1] = ',' // in place of the end of a line
	}
	c.answer[len(c.answer)-1] = ']'
	writeJSON(w, append(c.answer, "}\n"...))
}

func (a *API) reset(w http.ResponseWriter, r *http.Request, who asker) {
	c := newCall()
	defer c.free()
	if p := a.read(c, w, r, who, form{negative: true}); p != nil { // reset ignores costs, so any cost is valid
		writeProblem(w, p)
		return
	}
	if err := a.desk.Reset(r.Context(), who.Identity, r.RemoteAddr, c.requests...); err != nil {
		a.fail(w, r, err)
		return
	}
	writeJSON(w, appendMissed(append(c.answer, "{}\n"...), c.force, c.requests))
}

// alsoCounted ends the description of an error of the engine.
var alsoCounted = map[weir.Counted]string{
	weir.CountedUnknown: ", though it may have counted this request",
	weir.CountedYes:     ", though it has counted this request",
}

// fail answers an error of the engine, which had the usual patience.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	writeProblem(w, a.problemOf(r, err, a.desk.Patience()))
}

// problemOf maps an error of the engine to a status. No other function does.
func (a *API) problemOf(r *http.Request, err error, patience time.Duration) *problem {
	if bad, ok := errors.AsType[*weir.RequestError](err); ok {
		detail := bad.Field + " " + bad.Reason
		if bad.Rule != "" {
			detail = "rule " + decide.Quote(bad.Rule) + ": " + detail
		}
		return &problem{status: http.StatusBadRequest, field: bad.Field, detail: detail}
	}
	if a.desk.Failed(r.Context(), err, "path", r.URL.Path) {
		return hasLeft()
	}
	p := &problem{status: http.StatusServiceUnavailable, detail: "the engine could not decide"}
	if errors.Is(err, context.DeadlineExceeded) && patience > 0 {
		p.detail = "the engine did not decide in time"
	}
	p.detail += ", and admitted nothing; ask again"
	if r.URL.Path != peekPath {
		p.failed = err
		p.detail += alsoCounted[weir.WasCounted(err)]
	}
	return p
}

// wait takes all requests as soon as the engine admits them, and answers then.
func (a *API) wait(w http.ResponseWriter, r *http.Request, who asker) {
	a.patiently(w, r, who, form{}, func(c *call, p decide.Patient) (decide.Made, string, time.Duration, error) {
		made, err := a.desk.Wait(p, c.requests)
		return made, "", 0, err
	})
}

// reserve takes all requests, after a wait if the caller has patience, and answers with a token.
func (a *API) reserve(w http.ResponseWriter, r *http.Request, who asker) {
	a.patiently(w, r, who, form{reserves: true}, func(c *call, p decide.Patient) (decide.Made, string, time.Duration, error) {
		requests, estimated := c.force.Estimated(c.requests)
		made, token, life, err := a.desk.Reserve(p, requests)
		if estimated && made.Allowed {
			c.held = made.On
		}
		return made, token, life, err
	})
}

// patiently reads a request with a patience, asks, and answers with a decision, and with a token if there is something to hold.
func (a *API) patiently(w http.ResponseWriter, r *http.Request, who asker, f form, ask func(*call, decide.Patient) (decide.Made, string, time.Duration, error)) {
	c := newCall()
	defer c.free()
	control := http.NewResponseController(w)
	p := decide.Patient{Client: r.Context(), Extend: func(until time.Time) {
		_ = control.SetReadDeadline(until) // the server reads, to notice that the client goes away
		_ = control.SetWriteDeadline(until)
	}}
	if f.patience = &p.Patience; !f.reserves {
		p.Patience = a.desk.Longest()
	}
	if wrong := a.read(c, w, r, who, f); wrong != nil {
		writeProblem(w, wrong)
		return
	}
	made, token, lease, err := ask(c, p)
	if err != nil {
		a.refuseWait(w, r, min(p.Patience, a.desk.Longest()), err)
		return
	}
	c.force = a.desk.InForce() // a reload may have ended the wait
	a.tell(c, made, lease, token)
	writeJSON(w, c.answer)
}

// refuseWait answers a call that took nothing.
func (a *API) refuseWait(w http.ResponseWriter, r *http.Request, patience time.Duration, err error) {
	switch {
	case r.Context().Err() != nil:
		writeProblem(w, hasLeft())
	case errors.Is(err, decide.ErrSlots):
		writeProblem(w, badField(fieldRule, strings.TrimPrefix(err.Error(), "the rule ")+" and answers with a token"))
	case errors.Is(err, decide.ErrStopping):
		writeProblem(w, &problem{status: http.StatusServiceUnavailable, failed: err,
			detail: "the daemon is stopping, and the caller was not admitted; wait again, at another instance or after a second" + alsoCounted[weir.WasCounted(err)]})
	case errors.Is(err, weir.ErrQueueFull):
		a.noRoom.Warn(a.Log, "refused a caller: too many wait, or their requests are too large; --max-waiting bounds them")
		writeProblem(w, &problem{status: http.StatusServiceUnavailable, detail: "too many callers wait, or their requests are too large, and nothing was taken; ask again, or raise weir serve --max-waiting"})
	default:
		writeProblem(w, a.problemOf(r, err, max(patience, a.desk.Patience())))
	}
}
