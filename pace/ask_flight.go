package pace

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// flight is one question to the engine: for callers of one group, or of several that stand for slots in the lines of the
// engine.
type flight struct {
	asking  *asking
	lined   bool
	callers []*caller
	keys    []*slotKey // the slots of the callers, and others of which it tells the lines
	groups  []*group
	ask     enginekit.LineAsk // Callers has an answer for each caller; the rest is for lines

	decision weir.Decision // of an engine without lines, and how many callers it admitted
	times    int64

	ctx     context.Context // ends when all callers have left, unless lines may have admitted them
	cancel  context.CancelFunc
	leavers int
	ends    func() // what Flush waits for
	began   time.Time
	tries   int
	again   appointment
}

// newFlight returns a flight for the units of a key, or of a newcomer.
func (a *asking) newFlight(by *slotKey, lined bool) *flight {
	f := &flight{asking: a, lined: lined}
	f.again = newAppointment(f.start)
	if by != nil {
		f.key(by)
	}
	return f
}

// take takes the next caller of a group along.
func (f *flight) take(g *group) {
	c := g.fly(f)
	f.callers = append(f.callers, c)
	if !slices.Contains(f.groups, g) {
		f.groups = append(f.groups, g)
		for _, u := range g.uses {
			f.key(u.key)
		}
	}
}

// key has the flight tell about a key, which asks nothing else meanwhile.
func (f *flight) key(k *slotKey) {
	if !slices.Contains(f.keys, k) {
		f.keys = append(f.keys, k)
		k.busy++
		f.asking.agenda.Remove(&k.wake)
	}
}

// send asks the engine.
func (f *flight) send() {
	if f == nil {
		return
	}
	f.began = time.Now()
	for _, k := range f.keys {
		k.lastAsk, k.told, k.changed = f.began, 0, false
	}
	parent := context.Background()
	if len(f.callers) > 0 {
		parent = context.WithoutCancel(f.callers[0].ctx)
	} else { // the line shall know that nobody waits any more
		f.ends = f.asking.queue.background.begin()
	}
	f.ctx, f.cancel = context.WithCancel(parent)
	f.start()
}

// start asks once. A question without an answer is repeated with the same leases, and with what is true by then.
func (f *flight) start() {
	f.tries++
	f.ask = enginekit.LineAsk{Callers: make([]enginekit.LineCaller, len(f.callers)), Repeats: f.tries > 1}
	for i, c := range f.callers {
		f.ask.Callers[i] = enginekit.LineCaller{Requests: c.requests, Lease: c.lease, Since: c.since, Stays: c.again >= staysAfter}
	}
	hears := f.lined && f.asking.hears()
	for _, k := range f.keys {
		k.hears = hears
		f.ask.Keys = append(f.ask.Keys, k.rest())
	}
	go f.fly()
}

// staysAfter is how often the slots for which a caller stood admit it before it keeps the units of those that do.
const staysAfter = 3

// left notes that a caller has left during the flight.
func (f *flight) left() {
	f.leavers++
	if f.leavers == 1 {
		f.ends = f.asking.queue.background.begin() // Flush waits for the answer
	}
	if f.leavers == len(f.callers) && !f.lined {
		f.cancel()
	}
}

// fly waits for the answer. While the engine cannot be reached, it asks the lines again and again, because they may have
// admitted the callers.
func (f *flight) fly() {
	began := time.Now()
	err := guarded(func() error {
		if f.lined {
			return f.askLines()
		}
		return f.plain()
	})
	f.asking.queue.mu.Lock()
	defer f.asking.queue.mu.Unlock()
	again := f.leased() || !weir.MayHaveCounted(err)                                                             // leases tell what was taken, rates do not
	if f.lined && again && weir.Unavailable(err) && (len(f.callers) > 0 || time.Since(f.began) < longestPause) { // then entries die
		f.asking.agenda.plan(&f.again, time.Now().Add(backOff(f.tries)))
		return
	}
	f.cancel()
	f.landed(began, err)
}

// leased reports whether all callers take slots, by which the lines recognise them.
func (f *flight) leased() bool {
	return !slices.ContainsFunc(f.groups, func(g *group) bool { return len(g.uses) == 0 })
}

func backOff(tries int) time.Duration { return min(firstPause<<min(tries-1, 10), longestPause) }

// landed gives the callers their answers. An error ends the wait of one caller; the others ask again.
func (f *flight) landed(began time.Time, err error) {
	outage := err != nil && weir.Unavailable(err)
	lost := outage && weir.MayHaveCounted(err)
	if f.lined && err != nil && weir.MayHaveCounted(err) && f.leased() {
		f.drop(began)
	}
	f.share()
	refusals := map[*group]*enginekit.LineCaller{} // of the first caller that stays
	for i, c := range f.callers {
		answer := &f.ask.Callers[i]
		if err != nil {
			*answer = enginekit.LineCaller{}
			if !c.left && !outage {
				answer.Err, err = err, nil
			}
		}
		f.note(c, answer)
		if f.settle(c, answer, began); c.flight == f {
			c.group.land(c, false, false)
			if refusals[c.group] == nil {
				refusals[c.group] = answer
			}
		}
	}
	for _, g := range f.groups {
		g.lost = lost
		f.place(g, refusals[g], outage)
		g.after, g.afterOf = 0, nil
		if c := g.next(); c != nil && c.again >= staysAfter {
			f.asking.stayers[g] = true
		} else {
			delete(f.asking.stayers, g)
		}
	}
	for i, k := range f.keys {
		k.busy--
		if f.lined {
			k.inside = k.stood || f.ask.Keys[i].Want > 0
			k.learn(f.ask.Keys[i].LineNews)
		}
	}
	for _, g := range f.groups {
		if g.callers.Len() > 0 && !g.sleeps() && !g.stands() && g.flight == nil {
			f.asking.arrive(g)
		}
	}
	slices.SortStableFunc(f.keys, func(a, b *slotKey) int { return cmp.Compare(a.oldest(), b.oldest()) })
	for _, k := range f.keys { // the oldest callers first: the others may name their keys
		k.pump()
	}
	if f.ends != nil {
		f.ends()
	}
}

// note notes what an answer says of the keys, and whether those for which the caller stood admitted it and another limit
// refused it.
func (f *flight) note(c *caller, answer *enginekit.LineCaller) {
	stood, stands := false, false
	for _, u := range c.group.uses {
		stood = stood || u.stands
		if slices.ContainsFunc(answer.Stands, func(i int) bool { return u.key.key == keyOf(&answer.Requests[i]) }) {
			u.key.stood, stands = true, stands || u.stands
		}
	}
	if !stood || stands || answer.Decision.Allowed || answer.Decision == (weir.Decision{}) {
		return
	}
	c.again++
	for _, u := range c.group.uses {
		if u.stands && len(answer.Stands) == 0 {
			u.key.dry++
		}
	}
}

// settle ends the wait of a caller that goes, fails or has left.
func (f *flight) settle(c *caller, answer *enginekit.LineCaller, began time.Time) {
	q, g, d := f.asking.queue, c.group, answer.Decision
	err := answer.Err
	switch {
	case err == nil && d.Allowed:
		c.decision = d
		if f.lined && c.acquires {
			take := c.call()
			take.Taken = answer.Taken
			c.reservation = weir.Granted(q.engine, began, d, nil, take)
		}
		g.land(c, true, !c.left)
		g.refusals, g.after, g.afterOf = 0, answer.Next, c.requests
		for _, u := range g.uses {
			u.key.served = true
		}
		if c.left {
			q.abandon(c)
		} else {
			q.end(c, nil)
		}
		return
	case c.left:
		g.land(c, true, false)
		return
	case err == nil && d != weir.Decision{}:
		err = c.hopeless(d, len(answer.Stands) > 0)
	}
	if err == nil {
		return
	}
	g.land(c, true, false)
	q.end(c, err)
}

// drop gives back what the lines may have given to the callers, who get other leases for the next question.
func (f *flight) drop(began time.Time) {
	for _, c := range f.callers {
		r := weir.Granted(f.asking.queue.engine, began, weir.Decision{Allowed: true}, nil, c.call())
		f.asking.queue.inBackground(r.Cancel)
		c.lease = weir.NewLease()
	}
}

// place has a group wait for what refused its first caller. A group whose callers were not decided asks again.
func (f *flight) place(g *group, refusal *enginekit.LineCaller, outage bool) {
	switch {
	case g.callers.Len() == 0:
		f.asking.end(g)
	case outage:
		g.sleep(backOff(g.refusals + 1))
	case refusal == nil && g.after > 0 && slices.Equal(g.next().requests, g.afterOf): // the next one would be refused
		g.sleep(g.after)
	case refusal == nil || refusal.Decision == weir.Decision{}:
		g.wet++
		g.wakeKeys()
	case len(refusal.Stands) > 0:
		g.standFor(refusal)
	default:
		g.wet = 0
		g.sleep(refusal.Decision.RetryAfter)
	}
}

// plain asks an engine without lines.
func (f *flight) plain() error {
	c, engine := f.callers[0], f.asking.queue.engine
	switch {
	case c.acquires:
		a, err := engine.Do(f.ctx, weir.Call{Op: weir.OpReserve, Requests: c.requests, Waits: true})
		r := a.Reservation
		if err == nil && r == nil {
			return errNonsense
		}
		if err != nil {
			if r != nil {
				f.asking.queue.inBackground(r.Cancel)
			}
			return err
		}
		c.reservation = r
		f.answered(r.Decision, 1)
	case len(c.requests) == 1 && c.requests[0].Rule.Delays():
		return f.plainDelayed()
	case len(f.callers) == 1:
		a, err := engine.Do(f.ctx, weir.Call{Op: weir.OpTake, Requests: c.requests, Waits: true})
		if err != nil {
			return err
		}
		f.answered(a.Decision, 1)
	default:
		a, err := engine.Do(f.ctx, weir.Call{Op: weir.OpTakeUpTo, Most: int64(len(f.callers)), Requests: c.requests, Waits: true})
		if err != nil {
			return err
		}
		f.answered(a.Decision, a.Times)
	}
	return nil
}

// plainDelayed takes from a limit that admits with a delay, unless the delay ends after the caller's deadline.
func (f *flight) plainDelayed() error {
	c, engine := f.callers[0], f.asking.queue.engine
	if !c.deadline.IsZero() {
		d, err := engine.Peek(f.ctx, c.requests...)
		if err == nil {
			err = c.tooLate(d.Delay)
		}
		if err != nil {
			return err
		}
	}
	a, err := engine.Do(f.ctx, weir.Call{Op: weir.OpTake, Requests: c.requests, Waits: true})
	if err == nil {
		f.answered(a.Decision, 1)
	}
	return err
}

// share gives what an engine without lines admitted to callers that are still there. The rest is given back.
func (f *flight) share() {
	for i, c := range f.callers {
		if f.times > 0 && (!c.left || c.acquires) {
			f.ask.Callers[i].Decision = f.decision
			f.times--
		}
	}
	if f.times > 0 {
		f.asking.queue.giveBack(f.times, f.callers[0].requests)
	}
}
