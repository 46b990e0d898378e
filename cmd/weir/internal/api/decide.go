package api

import (
	"context"
	"net/http"

	"github.com/weirflow/weir"
)

// operation is Take, Peek, Record or Return of an engine.
type operation func(weir.Engine, context.Context, ...weir.Request) (weir.Decision, error)

func decideWith(op operation) func(*API, http.ResponseWriter, *http.Request) {
	return func(a *API, w http.ResponseWriter, r *http.Request) {
		c := newCall()
		defer c.free()
		if p := a.read(c, w, r, form{}); p != nil {
			writeProblem(w, p)
			return
		}
		ctx, cancel := a.withPatience(r.Context())
		defer cancel()
		d, err := op(a.engine, ctx, c.requests...)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		a.health.succeeded()
		if a.asked != nil && r.URL.Path == takePath {
			a.asked(c.requests, d.Allowed)
		}
		c.answer = appendDecision(c.answer, d, a.leases.shortest(c.requests), "")
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
	a.waits.tokens.lose(c.requests)
	a.health.succeeded()
	writeJSON(w, append(c.answer, "{}\n"...))
}
