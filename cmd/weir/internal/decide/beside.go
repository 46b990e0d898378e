package decide

import (
	"errors"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

var errTooMany = errors.New("too many shadows and candidates are being decided")

// tryBeside decides shadows and candidates beside the decisions in force, each in a call of its own, without keeping callers
// waiting. It leaves out rules that the caller may not ask for. op is that of the decision in force: a take, a record of a
// reported cost, or a return.
func (d *Desk) tryBeside(who *auth.Identity, op weir.Op, requests []weir.Request, inForce weir.Decision) {
	for _, q := range requests {
		if who != nil && !who.May(auth.Take, inFile(q.Rule)) {
			continue
		}
		if c := (weir.Call{Op: op, Requests: []weir.Request{q}}); !d.beside.Add(c, inForce) {
			d.compared(c, inForce, weir.Result{Err: errTooMany})
		}
	}
}

// compared reports the outcome of a shadow or candidate. A failing engine is noticed by the decisions in force.
func (d *Desk) compared(c weir.Call, inForce weir.Decision, r weir.Result) {
	if c.Op == weir.OpReturn { // which decides nothing
		return
	}
	if c.Op == weir.OpRecord { // which refuses nothing
		r.Decision.Allowed = true
	}
	if d.options.Compared != nil {
		d.options.Compared(c.Requests[0].Rule.Name(), inForce, r.Decision, r.Err)
	}
}
