package pace

import (
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// asking is the strategy for every engine but the memory engine. The callers that ask for the same keys are a group. Its
// first caller asks, for itself and those behind it. After a refusal by a rate the group sleeps until the instant that the
// engine names. After a refusal by slots it stands for them (ask_slots.go) until some may be free.
//
// Callers do not call the engine themselves: a flight does (ask_flight.go). So a caller can leave at any time, and an
// engine that hangs, panics or answers nonsense harms nobody but the callers of the flight.
type asking struct {
	queue   *Queue
	lines   enginekit.Lines     // of the engine; nil if it keeps none
	due     []*slotKey          // whose time to ask has come
	groups  map[string]*group   // by keys
	slots   map[string]*slotKey // that groups stand for, by key
	tokens  map[uint64]*slotKey // the same
	stayers map[*group]bool     // whose first caller stays: see enginekit.LineCaller
	joint   map[string]int      // groups that ask for several keys, by each of them
	agenda  *agenda
	last    uint64 // token
}

// inLine ends the names of groups and keys whose callers stand in the lines of the engine.
const inLine = "\x00in line"

func newAsking(q *Queue) *asking {
	a := &asking{queue: q, stayers: map[*group]bool{}, groups: map[string]*group{}, slots: map[string]*slotKey{}, tokens: map[uint64]*slotKey{}, joint: map[string]int{}}
	a.agenda = newAgenda(&q.mu, a.askDue)
	return a
}

// join adds c to the group of its keys. The first of a group asks at once.
func (a *asking) join(c *caller) error {
	name := keysOf(c.requests)
	lane, lined := 0, false
	if a.lines != nil && a.competes(c) {
		var err error
		if lane, lined, err = a.keeps(c.requests); err != nil {
			return err
		}
	}
	if lined {
		name += inLine
		c.lease = weir.NewLease()
	}
	g := a.groups[name]
	if g != nil {
		if err := g.tooLate(c); err != nil {
			return err
		}
	}
	if err := a.queue.enter(); err != nil {
		return err
	}
	if g == nil {
		g = a.newGroup(name, lined, lane, c.requests)
	}
	before := g.next()
	g.add(c)
	if g.flight == nil && g.next() == c {
		a.newFirst(g, before)
	}
	return nil
}

// competes reports whether callers of other processes have to know of c: it acquires slots, or asks for a rate that others
// book.
func (a *asking) competes(c *caller) bool {
	slots, rates := false, false
	for i := range c.requests {
		r := &c.requests[i]
		slots = slots || asksForSlots(r)
		rates = rates || r.Rule.Bookable() && !r.Rule.Delays()
	}
	return slots && c.acquires || !slots && rates
}

// asks reports whether callers ask for a key, of a flow or for other keys, too. Then a caller of that key alone does not book,
// but asks among them, so that those of the same keys go in order.
func (a *asking) asks(key string) bool {
	return len(a.groups) > 0 && (a.joint[key] > 0 || a.groups[key] != nil || a.groups[key+inLine] != nil)
}

// newFirst looks whether a group whose first caller has changed goes earlier.
func (a *asking) newFirst(g *group, before *caller) {
	switch {
	case before == nil:
		a.arrive(g)
	case slices.Equal(g.next().requests, before.requests) && !g.lined:
	case g.sleeps():
		g.refusals = 0
		a.arrive(g)
	default:
		g.newFirst()
	}
}

// leave removes c. During a flight its place stays until the answer.
func (a *asking) leave(c *caller) {
	g := c.group
	if c.flight != nil {
		c.left = true
		c.flight.left()
		return
	}
	first := g.next() == c
	g.remove(c)
	switch {
	case g.callers.Len() == 0:
		a.end(g)
	case first && g.flight == nil:
		a.newFirst(g, c)
	}
}

// returned notes that slots came back. An engine whose signals reach the queue tells it itself.
func (a *asking) returned(keys []string) {
	for _, key := range keys {
		for _, lined := range []bool{false, true} {
			if k := a.slots[slotName(key, lined)]; k != nil && !k.hears {
				k.told = max(k.told, 1)
				k.pump()
			}
		}
	}
}
