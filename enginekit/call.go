package enginekit

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/compiled"
)

// Merged is the checked and merged requests of one call of an engine. Its parts are decided together, all or none.
type Merged struct {
	Op    weir.Op // a take, peek, record or reset. A return is a record of negative costs, or with a Taken an undo of them
	Lease uint64
	Parts []Part
	Waits bool  // the caller waits, so that no refusal counts towards a weir.Ban
	Most  int64 // the most times that a take may take the requests: 1, or more in a weir.OpTakeUpTo
	Times int64 // the times that it took them; Decide sets it
}

// Part is one limit of one key in a call.
type Part struct {
	Functions
	Request weir.Request // merged: Cost is the sum for one rule and key
	Limit   int          // index of the limit in Request.Rule.Limits()
	Name    string       // the name of the limit's states: see StateNames
	Taken   int64        // when the units were taken: set for an undo, and by Decide for a take with a Lease
	State   State        // the state before the decision; fresh at first
	request uint8        // index of the merged request
	Changed bool         // Decide changed the state, so the engine must store it; false for a stateless limit
}

// StateKey returns the name of the part's state among all states of an engine: the Name and the key, joined by a NUL
// byte.
func (p *Part) StateKey() string { return p.Name + "\x00" + p.Request.Key }

// mergedOf checks and merges the requests of a call and makes its parts. The error is a *weir.RequestError, or that of
// ctx.
func mergedOf(ctx context.Context, call weir.Call) (*Merged, error) {
	op := call.Op
	if op == weir.OpTakeUpTo {
		op = weir.OpTake
	}
	if err := cmp.Or(CheckMost(call.Most), weir.Kit.CheckTaken(call)); err != nil {
		return nil, err
	}
	merged, err := Merge(op, call.Requests)
	if err != nil {
		return nil, err
	}
	if call.Identity != "" {
		return nil, requestError(op, &compiled.Problem{Field: "identity", Reason: "is given, but this engine recognises no repeated decision"})
	}
	if err := ctx.Err(); err != nil {
		return nil, CannotDecide(op, err)
	}
	return newMerged(op, merged, &call), nil
}

func newMerged(op weir.Op, merged []weir.Request, call *weir.Call) *Merged {
	c := &Merged{Op: op, Lease: call.Lease, Waits: call.Waits, Most: 1, Parts: make([]Part, 0, len(merged))}
	for i, q := range merged {
		if call.Op == weir.OpTakeUpTo {
			c.Most = max(call.Most, 1)
			q.Cost *= min(call.Most, 1)
		}
		taken := int64(0)
		if call.Op == weir.OpReturn {
			q.Cost = -q.Cost
			if c.Op = weir.OpRecord; call.Taken != nil {
				c.Op, taken = weir.OpReturn, call.Taken[indexOf(call.Requests, &q)]
			}
		}
		limits := weir.Kit.Compiled(q.Rule).Parts
		for j := range limits {
			f := Functions{limits[j].Algorithm}
			c.Parts = append(c.Parts, Part{Functions: f, Request: q, Limit: j, Name: limits[j].State, Taken: taken, State: f.Fresh(), request: uint8(i)})
		}
	}
	return c
}

// indexOf returns the index of the first request with the rule and the key of q.
func indexOf(requests []weir.Request, q *weir.Request) int {
	return slices.IndexFunc(requests, func(r weir.Request) bool { return r.Key == q.Key && r.Rule.Name() == q.Rule.Name() })
}

// taken returns the Taken of the answer to a take, which was admitted.
func (c *Merged) taken(requests []weir.Request) []int64 {
	if c.Op != weir.OpTake || c.Lease == 0 {
		return nil
	}
	taken := make([]int64, len(requests))
	for i := range requests {
		taken[i] = math.MinInt64
		for j := range c.Parts {
			if p := &c.Parts[j]; p.Request.Key == requests[i].Key && p.Request.Rule.Name() == requests[i].Rule.Name() {
				taken[i] = max(taken[i], p.Taken)
			}
		}
	}
	return taken
}

// Decide decides the call at an instant, in nanoseconds since the Unix epoch. The
// states of the parts are those before the decision; Decide replaces the states
// that it changes. A Reset makes all of them fresh and returns no decision.
//
// No other call may load these states until the changed ones are stored.
func (c *Merged) Decide(now int64) weir.Decision {
	if c.Op == weir.OpReset {
		for i := range c.Parts {
			p := &c.Parts[i]
			p.State, p.Changed = p.Fresh(), !algorithm.Stateless(p.algorithm)
		}
		return weir.Decision{}
	}
	d := c.change(func(parts []algorithm.Part) algorithm.Answer { return c.ask(parts, now) })
	if c.Op == weir.OpTake && d.Allowed && c.Lease != 0 {
		for i := range c.Parts {
			p := &c.Parts[i]
			p.Taken = algorithm.TakenAt(p.algorithm, p.State.state, now)
		}
	}
	return d
}

// change has verb decide the parts, and takes in the states that it changed.
func (c *Merged) change(verb func([]algorithm.Part) algorithm.Answer) weir.Decision {
	parts := make([]algorithm.Part, len(c.Parts))
	for i := range parts {
		p := &c.Parts[i]
		parts[i] = algorithm.Part{Algorithm: p.algorithm, State: p.State.state, Cost: p.Request.Cost, Lease: c.Lease, Taken: p.Taken, Request: p.request, Spared: c.Waits}
	}
	answer := verb(parts)
	for i := range parts {
		p := &c.Parts[i]
		p.State.state, p.Changed = parts[i].State, parts[i].Changed && !algorithm.Stateless(p.algorithm)
	}
	d := decision(&answer)
	binding := &c.Parts[answer.Binding].Request
	d.Rule, d.Key = binding.Rule.Name(), binding.Key
	if d.LimitIndex = uint8(c.Parts[answer.Binding].Limit); !d.Allowed {
		d.RefusedBy = d.LimitIndex
		d.LimitIndex += uint8(answer.Beside)
	}
	return d
}

// ask decides the parts by the verb of the call, and sets Times.
func (c *Merged) ask(parts []algorithm.Part, now int64) (answer algorithm.Answer) {
	if c.Op == weir.OpTake && c.Most > 1 {
		c.Times, answer = algorithm.TakeUpTo(parts, now, c.Most)
		return answer
	}
	answer = ask(c.Op, parts, now)
	if c.Times = 0; c.Op == weir.OpTake && answer.Allowed {
		c.Times = 1
	}
	return answer
}

// stateless reports whether no part has a state.
func (c *Merged) stateless() bool {
	return !slices.ContainsFunc(c.Parts, func(p Part) bool { return !algorithm.Stateless(p.algorithm) })
}

func ask(op weir.Op, parts []algorithm.Part, now int64) algorithm.Answer {
	switch op {
	case weir.OpTake:
		return algorithm.Take(parts, now)
	case weir.OpRecord:
		return algorithm.Record(parts, now)
	case weir.OpReturn:
		return algorithm.Undo(parts, now)
	}
	return algorithm.Peek(parts, now)
}

func decision(a *algorithm.Answer) weir.Decision {
	return weir.Decision{
		Allowed:    a.Allowed,
		Unrecorded: a.Unrecorded,
		Cause:      cause(a.Allowed, a.ByGap, a.ByBan),
		BanBegun:   a.Begun,
		Limit:      a.Limit,
		Remaining:  a.Remaining,
		RetryAfter: time.Duration(a.RetryAfter),
		ResetAfter: time.Duration(a.ResetAfter),
		LimitReset: time.Duration(a.LimitReset),
		Delay:      time.Duration(a.Delay),
	}
}

func cause(allowed, byGap, byBan bool) weir.Cause {
	switch {
	case allowed:
		return 0
	case byBan:
		return weir.ByBan
	case byGap:
		return weir.ByGap
	}
	return weir.ByCount
}
