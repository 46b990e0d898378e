package pace

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// trip is one question to the engine, for callers of one group or of several: a call for each, in one OpEach.
type trip struct {
	asking  *asking
	callers []*caller
	groups  []*group
	keys    []*askKey
	calls   []weir.Call
	results []weir.Result

	ctx     context.Context // ends when all callers have left
	cancel  context.CancelFunc
	leavers int
	ends    func() // what Flush waits for
	began   time.Time
}

// take takes the next caller of a group along.
func (t *trip) take(g *group) {
	c := g.next()
	for _, k := range g.keys {
		k.asked(t, c)
		if !slices.Contains(t.keys, k) {
			t.keys = append(t.keys, k)
		}
	}
	if g.flying == 0 {
		t.groups = append(t.groups, g)
	}
	g.flying, g.last, c.trip = g.flying+1, c, t
	t.callers = append(t.callers, c)
	call := weir.Call{Op: weir.OpTake, Requests: c.requests, Waits: true}
	if c.acquires {
		call.Lease = weir.Kit.NewLease()
	}
	t.calls = append(t.calls, call)
}

// send asks the engine on a goroutine of its own.
func (t *trip) send() {
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(t.callers[0].ctx))
	t.results = make([]weir.Result, len(t.callers))
	t.began = time.Now()
	go t.fly()
}

// left notes that a caller has left during the trip.
func (t *trip) left() {
	t.leavers++
	if t.leavers == 1 {
		t.ends = t.asking.queue.background.begin() // Flush waits for the answer
	}
	if t.leavers == len(t.callers) {
		t.cancel()
	}
}

// fly waits for the answers.
func (t *trip) fly() {
	late := t.late()
	err := guarded(func() error { return t.asking.queue.engine.Each(t.ctx, t.calls, t.results) })
	for i, refusal := range late {
		t.results[i].Err = refusal
	}
	t.asking.queue.mu.Lock()
	defer t.asking.queue.mu.Unlock()
	t.cancel()
	t.landed(err)
}

// late returns the refusals of callers whose limit would admit them with a delay that ends after their deadlines: they only
// peek, because such a take would not come back whole.
func (t *trip) late() map[int]error {
	refusals := map[int]error{}
	for i, c := range t.callers {
		if c.deadline.IsZero() || !c.delays() {
			continue
		}
		err := guarded(func() error {
			d, err := t.asking.queue.engine.Peek(t.ctx, c.requests...)
			return cmp.Or(err, c.tooLate(d.Delay))
		})
		if err != nil {
			refusals[i], t.calls[i].Op = err, weir.OpPeek
		}
	}
	return refusals
}

// landed gives the callers their answers.
func (t *trip) landed(err error) {
	for i, c := range t.callers {
		c.trip = nil
		r := &t.results[i]
		if err != nil {
			*r = weir.Result{Err: err}
			if !weir.Unavailable(err) && i > 0 { // it ends the wait of one caller
				r.Err = againError{err}
			}
		} else if r.Err == nil && !r.Decision.Allowed && r.Decision.RetryAfter <= 0 {
			r.Err = errNonsense
		}
		t.learn(c, r)
	}
	for _, g := range t.groups {
		g.unfile() // before its callers change
		g.flying, g.last = 0, nil
	}
	t.grant()
	for i, c := range t.callers {
		t.settle(c, &t.calls[i], &t.results[i])
	}
	for _, k := range t.keys {
		k.landed()
	}
	for _, g := range t.groups {
		g.refile()
	}
	t.asking.sendReady()
	if t.ends != nil {
		t.ends()
	}
}

// againError is the error of a trip for callers that ask again.
type againError struct{ error }

func (e againError) Unwrap() error   { return e.error }
func (againError) Unavailable() bool { return true }

// learn passes the engine's answer to the keys of a caller. A cost that is never admitted concerns its caller alone.
func (t *trip) learn(c *caller, r *weir.Result) {
	d, found := r.Decision, false
	for i, k := range c.group.keys {
		named := k.request.Rule != nil && d.Rule == k.request.Rule.Name() && d.Key == k.request.Key
		found = found || named
		named = named || !found && i == len(c.group.keys)-1 // the engine of another author may name no key
		switch {
		case r.Err != nil: // perhaps because all have left, which is no failure of the engine
			if weir.Unavailable(r.Err) && t.leavers < len(t.callers) {
				k.broke = true
			}
		case d.Allowed:
			k.granted(d.Remaining, named)
		case named && !c.never(d):
			k.refused(d, k.costOf(c), bySlotsOf(k.request.Rule, d))
		}
	}
}

// grant moves grants to the front of each group: callers on a trip ask for the same, and the oldest that stay go first,
// even if the engine decided them later.
func (t *trip) grant() {
	results, calls := slices.Clone(t.results), slices.Clone(t.calls)
	for _, g := range t.groups {
		var granted, refused, stay, left []int
		for i, c := range t.callers {
			switch {
			case c.group != g || results[i].Err != nil:
				continue
			case results[i].Decision.Allowed:
				granted = append(granted, i)
			default:
				refused = append(refused, i)
			}
			if c.left {
				left = append(left, i)
			} else {
				stay = append(stay, i)
			}
		}
		from := append(granted, refused...)
		for n, to := range append(stay, left...) {
			t.results[to], t.calls[to] = results[from[n]], calls[from[n]]
		}
	}
}

// settle ends the wait of a caller that goes, fails or has left. The others keep their places.
func (t *trip) settle(c *caller, call *weir.Call, r *weir.Result) {
	q, g, d, err := t.asking.queue, c.group, r.Decision, r.Err
	if err != nil && weir.WasCounted(err) != weir.CountedNo {
		q.release(*call)
	}
	switch {
	case err == nil && d.Allowed:
		if c.decision, c.taken, c.paid = d, r.Taken, r.Paid; c.acquires {
			take := *call
			take.Requests, take.Taken = c.took(), r.Taken
			c.reservation = weir.Kit.Granted(q.engine, t.began, d, nil, take)
		}
		if c.left || c.acquires && c.lapsed(t.began) { // which asks again
			q.abandon(c)
			if c.left {
				g.callers.Remove(&c.Node)
			}
			return
		}
		g.callers.Serve(&c.Node)
		q.end(c, nil)
		return
	case c.left:
		g.callers.Remove(&c.Node)
		return
	case err == nil:
		err = c.refusedBy(d)
	case weir.Unavailable(err):
		return
	}
	if err != nil {
		g.callers.Remove(&c.Node)
		q.end(c, err)
	}
}
