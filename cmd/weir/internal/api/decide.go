package api

import (
	"context"
	"net/http"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// operation is Take, Peek, Record or Return of an engine.
type operation func(weir.Engine, context.Context, ...weir.Request) (weir.Decision, error)

func decideWith(op operation) func(*API, http.ResponseWriter, *http.Request) {
	return func(a *API, w http.ResponseWriter, r *http.Request) {
		c := newCall()
		defer c.free()
		if p := a.read(c, w, r, form{attributes: r.URL.Path == takePath || r.URL.Path == peekPath, batch: true}); p != nil {
			writeProblem(w, p)
			return
		}
		takes := r.URL.Path == takePath
		if c.outcome.Verdict != rules.Ask {
			d := a.judged(r.Context(), &c.outcome, takes)
			c.answer = c.force.appendMessage(appendDecision(c.answer, d, 0, ""), d)
			writeJSON(w, c.answer)
			return
		}
		ctx, cancel := a.withPatience(r.Context())
		defer cancel()
		if c.apart {
			a.decideApart(ctx, c, w, r)
			return
		}
		d, err := op(a.engine, ctx, c.requests...)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		if takes && a.asked != nil {
			a.asked(c.requests, d.Allowed)
		}
		if takes {
			a.tryBeside(&c.outcome, d)
		}
		c.answer = c.force.appendMessage(appendDecision(c.answer, d, c.force.leases.shortest(c.requests), ""), d)
		c.answer = c.force.quotas.appendReset(c.answer, d, c.requests)
		if r.URL.Path == peekPath && len(c.outcome.Requests) == 0 {
			c.answer = c.force.appendMissed(c.answer, c.requests)
		}
		writeJSON(w, c.answer)
	}
}

func (a *API) reset(w http.ResponseWriter, r *http.Request) {
	c := newCall()
	defer c.free()
	if p := a.read(c, w, r, form{negative: true}); p != nil { // reset ignores costs, so any cost is valid
		writeProblem(w, p)
		return
	}
	ctx, cancel := a.withPatience(r.Context())
	defer cancel()
	if err := a.engine.Reset(ctx, c.requests...); err != nil {
		a.fail(w, r, err)
		return
	}
	writeJSON(w, c.force.appendMissed(append(c.answer, "{}\n"...), c.requests))
}
