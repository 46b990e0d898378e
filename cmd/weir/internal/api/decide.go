package api

import (
	"context"
	"net/http"
	"slices"

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
		if len(c.outcome.Beside) > 0 && r.URL.Path == takePath {
			a.tryBeside(slices.Clone(c.outcome.Beside))
		}
		if c.outcome.Verdict != rules.Ask {
			c.answerWithoutEngine(w)
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
		a.health.succeeded()
		if a.asked != nil && r.URL.Path == takePath {
			a.asked(c.requests, d.Allowed)
		}
		c.answer = c.force.appendMessage(appendDecision(c.answer, d, c.force.leases.shortest(c.requests), ""), d)
		writeJSON(w, c.answer)
	}
}

// mostBeside bounds the requests whose shadows and candidates are being decided. Those of further ones are not.
const mostBeside = 256

// tryBeside decides shadows and candidates, each in a call of its own, without keeping the client waiting. /v1/stats
// counts what they admit and refuse.
func (a *API) tryBeside(requests []weir.Request) {
	if a.beside.Add(1) > mostBeside {
		a.beside.Add(-1)
		return
	}
	go func() {
		defer a.beside.Add(-1)
		ctx, cancel := a.withPatience(context.Background())
		defer cancel()
		for _, q := range requests {
			_, _ = a.engine.Take(ctx, q) // a failing engine is noticed by the decisions in force
		}
	}()
}

// answerWithoutEngine answers a request that a rule in a file exempts or refuses, or that none decides.
func (c *call) answerWithoutEngine(w http.ResponseWriter) {
	d := weir.Decision{Allowed: c.outcome.Verdict == rules.Allow}
	if c.outcome.Rule != nil {
		d.Rule = c.outcome.Rule.Name
	}
	if !d.Allowed {
		d.RetryAfter, d.ResetAfter = weir.Never, weir.Never
	}
	c.answer = c.force.appendMessage(appendDecision(c.answer, d, 0, ""), d)
	writeJSON(w, c.answer)
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
