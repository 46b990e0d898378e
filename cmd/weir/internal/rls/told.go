package rls

import (
	"context"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/desk"
	"github.com/weirflow/weir/cmd/weir/internal/door"
)

// toldCosts are the costs of a call that Envoy tells when a stream has ended (apply_on_stream_done): those of 2 hits or more, under
// rules that charge after the work. Envoy does not read the answer and never asks again. So they are counted whatever the rest
// of the call is answered, also into debt.
type toldCosts struct {
	costs  []weir.Request
	beside []weir.Request // of shadows and candidates
}

// matched adds what the rules ask for a descriptor: costs that are told here, and all else to the requests.
func (t *toldCosts) matched(p *part, hits int64, matched []weir.Request, requests *[]weir.Request) {
	from := len(t.costs)
	for _, q := range matched {
		switch after := q.Rule.ChargesAfter(); {
		case after && p.op == take && hits > 1:
			t.costs = append(t.costs, q)
			continue
		case after && p.op == ask:
			q.Cost = max(q.Cost, 1) // there is always room for nothing
		}
		*requests = append(*requests, q)
	}
	p.told = t.costs[from:len(t.costs):len(t.costs)]
}

// besides adds the requests of shadows and candidates, and returns those that take.
func (t *toldCosts) besides(hits int64, all, takes []weir.Request) []weir.Request {
	for _, q := range all {
		if hits > 1 && q.Rule.ChargesAfter() {
			t.beside = append(t.beside, q)
		} else {
			takes = append(takes, q)
		}
	}
	return takes
}

// countTold counts the told costs of a call.
func (c *call) countTold(ctx context.Context, who *door.Identity, d *desk.Desk) {
	if len(c.told.costs)+len(c.told.beside) == 0 {
		return
	}
	made := d.Told(ctx, who, c.in.config, c.told.costs, c.told.beside)
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
