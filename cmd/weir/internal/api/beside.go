package api

import (
	"context"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// judged returns the decision of rules in files that ask no engine: one exempts or refuses the request, or none decides.
func (a *API) judged(ctx context.Context, o *rules.Outcome, takes bool) weir.Decision {
	d := weir.Decision{Allowed: o.Verdict == rules.Allow}
	if o.Rule != nil {
		d.Rule = o.Rule.Name
	}
	if !d.Allowed {
		d.RetryAfter, d.ResetAfter = weir.Never, weir.Never
	}
	if !takes {
		return d
	}
	if a.judges != nil {
		a.judges(ctx, d.Rule, d.Allowed, o.Reason)
	}
	a.tryBeside(o, d)
	return d
}

// mostBeside bounds the requests whose shadows and candidates are being decided. Those of further ones are not.
const mostBeside = 256

// tryBeside decides shadows and candidates beside a decision in force, each in a call of its own, without keeping the
// client waiting.
func (a *API) tryBeside(o *rules.Outcome, inForce weir.Decision) {
	if len(o.Beside) == 0 {
		return
	}
	if a.beside.Add(1) > mostBeside {
		a.beside.Add(-1)
		return
	}
	requests := slices.Clone(o.Beside)
	go func() {
		defer a.beside.Add(-1)
		ctx, cancel := a.withPatience(context.Background())
		defer cancel()
		for _, q := range requests {
			d, err := a.engine.Take(ctx, q) // a failing engine is noticed by the decisions in force
			if a.compared != nil {
				a.compared(q.Rule.Name(), inForce, d, err)
			}
		}
	}()
}
