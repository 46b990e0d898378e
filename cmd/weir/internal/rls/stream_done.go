package rls

import (
	"context"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// afterCosts are the costs of a call that Envoy reports when a stream has ended (apply_on_stream_done): those of 2 hits
// or more, under rules that charge after the work. Envoy does not read the answer and never asks again. So they are
// counted in spite of the other answers to the call, even into debt.
type afterCosts struct {
	costs  []weir.Request
	beside []weir.Request // of shadows and candidates
}

// takeFrom takes the reported costs of a descriptor out of the outcome of its rules.
func (t *afterCosts) takeFrom(o *rules.Outcome, p *part, hits int64) {
	if p.op == ask {
		for i := range o.Requests {
			if q := &o.Requests[i]; q.Rule.ChargesAfter() {
				q.Cost = max(q.Cost, 1) // there is always room for nothing
			}
		}
	}
	if p.op != take || hits == 1 {
		return
	}
	from := len(t.costs)
	t.costs, o.Requests = divide(t.costs, o.Requests)
	t.beside, o.Beside = divide(t.beside, o.Beside)
	p.told = t.costs[from:len(t.costs):len(t.costs)]
}

// divide appends the requests of rules that charge after the work to the told ones, and returns the others, too.
func divide(told, requests []weir.Request) (allTold, others []weir.Request) {
	others = requests[:0]
	for _, q := range requests {
		if q.Rule.ChargesAfter() {
			told = append(told, q)
		} else {
			others = append(others, q)
		}
	}
	return told, others
}

// countTold counts the told costs of a call.
func (c *call) countTold(ctx context.Context, who *auth.Identity, d *decide.Desk) {
	if len(c.told.costs)+len(c.told.beside) == 0 {
		return
	}
	made := d.Told(ctx, who, c.told.costs, c.told.beside)
	for i := range c.parts {
		p := &c.parts[i]
		p.toldDecisions, made = made[:len(p.told)], made[len(p.told):]
	}
}

// showTold has each descriptor show the told cost that leaves least, unless its other requests leave less, or refuse.
func (c *call) showTold() {
	for i := range c.parts {
		p := &c.parts[i]
		for _, d := range p.toldDecisions {
			if !p.refused && (p.decision.Rule == "" || d.Rule != "" && d.Remaining < p.decision.Remaining) {
				p.decision = d
			}
		}
		p.requests = append(p.requests, p.told...)
	}
}
