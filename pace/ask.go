package pace

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/fair"
)

// asking is the strategy that asks the engine when it may admit a caller. It serves every engine but the memory engine, and
// every request.
//
// The callers that ask for the same keys are a group. Its first caller asks, and others with it if an answer has shown
// that there are units for them. A refusal puts its key to sleep until the instant that the engine names, and all groups
// that need the key with it: then only the oldest of them asks (ask_key.go). Groups whose next caller may ask are ready,
// by its arrival. The others are parked at a key that keeps them from asking.
//
// Callers do not call the engine themselves: a trip does (ask_trip.go). So a caller can leave at any time, and an engine that
// hangs, panics or answers nonsense harms nobody but the callers of the trip.
type asking struct {
	queue  *Queue
	groups map[string]*group    // by keys and their limits
	keys   map[string]*askKey   // by key and its limits
	names  map[string][]*askKey // the same, by key; callers of these keys do not book
	ready  fair.Heap[*group]
	agenda *agenda
	trip   *trip         // that sendReady fills
	phase  time.Duration // see poll
}

func newAsking(q *Queue) *asking {
	a := &asking{queue: q, groups: map[string]*group{}, keys: map[string]*askKey{}, names: map[string][]*askKey{}, ready: newGroups(), phase: rand.N(together)}
	a.agenda = newAgenda(&q.mu, a.sendReady)
	return a
}

// newGroups returns an empty heap of groups, by the arrival of their next callers. A group is in one heap at most.
func newGroups() fair.Heap[*group] {
	return fair.NewHeap(func(a, b *group) bool { return a.next().Arrival < b.next().Arrival }, func(g *group) *int { return &g.place })
}

// join adds c to the group of its keys. The first of a group asks at once, unless a key sleeps.
func (a *asking) join(c *caller) error {
	if err := c.reservable(); err != nil {
		return err
	}
	if err := a.tooLate(c); err != nil {
		return err
	}
	if err := a.queue.enter(c); err != nil {
		return err
	}
	name := keysOf(c.requests)
	g := a.groups[name]
	if g == nil {
		g = a.newGroup(name, c.requests)
		a.queue.askInstead(g.keys)
	}
	before := g.next()
	c.group = g
	c.enter(&g.callers)
	if g.next() != before {
		g.refile()
	}
	a.sendReady()
	return nil
}

// tooLate refuses a newcomer whose deadline is before the instant when a rate may admit its cost.
func (a *asking) tooLate(c *caller) error {
	for _, name := range keysIn(c.requests) {
		if k := a.keys[name]; k != nil && k.refusedBy == byRate && k.sleeps(k.costOf(c), time.Now()) {
			if err := c.tooLate(time.Until(k.retryAt)); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave removes c. During a trip its place stays until the answer.
func (a *asking) leave(c *caller) {
	if c.trip != nil {
		c.left = true
		c.trip.left()
		return
	}
	g := c.group
	g.remove(c)
	a.sendReady()
}

// returned notes that this process gave back units of keys that it had held for a time.
func (a *asking) returned(names []string, held time.Duration) {
	for _, name := range names {
		for _, k := range a.names[name] {
			k.cameBack(held)
		}
	}
	a.sendReady()
}

// sendReady sends the callers that may ask, the oldest first.
func (a *asking) sendReady() {
	now := time.Now()
	for a.ready.Len() > 0 {
		if a.trip == nil {
			a.trip = &trip{asking: a}
		}
		g := a.ready.Pop()
		g.in = nil
		if a.queue.changes(g.next()) {
			a.move(g)
			continue
		}
		if i := slices.IndexFunc(g.keys, func(k *askKey) bool { return k.keeps(g, now) }); i >= 0 {
			g.keys[i].park(g, now)
		} else if a.trip.take(g); g.next() != nil {
			g.file(&a.ready)
		}
		if len(a.trip.callers) == mostTogether {
			a.send()
		}
		g.advance(now)
	}
	a.send()
}

// mostTogether bounds the callers of a trip or a booking.
const mostTogether = 128

func (a *asking) send() {
	t := a.trip
	if a.trip = nil; t != nil && len(t.callers) > 0 {
		t.send()
	}
}

// move has the next caller of a group join again, because its rules have changed.
func (a *asking) move(g *group) {
	c := g.next()
	g.remove(c)
	a.queue.rejoin(c)
}

// group is the callers that ask for the same keys under the same limits, in order. The first ones may be on a trip.
type group struct {
	asking  *asking
	name    string
	keys    []*askKey
	callers fair.Queue[*caller]
	flying  int     // callers on a trip
	last    *caller // the last of them

	in    *fair.Heap[*group] // nil if it is in none
	place int
}

func (a *asking) newGroup(name string, requests []weir.Request) *group {
	g := &group{asking: a, name: name, place: -1}
	for _, key := range keysIn(requests) {
		k := a.keys[key]
		if k == nil {
			k = a.newKey(key, onKey(requests, key))
		}
		k.groups++
		a.agenda.Remove(&k.expiry)
		g.keys = append(g.keys, k)
	}
	a.groups[name] = g
	return g
}

// next returns the first caller that may be asked for besides those on a trip, or nil. Of several flows one caller travels at
// a time, because the order of those behind depends on the answer. Otherwise callers with equal requests travel
// together, so that an answer to one also holds for another.
func (g *group) next() *caller {
	switch {
	case g.flying == 0:
		return g.callers.First()
	case !g.callers.Single():
		return nil
	}
	if c := g.last.Next(); c != nil && c.alike(g.last) {
		return c
	}
	return nil
}

// file puts the group, which is in no heap, into one.
func (g *group) file(in *fair.Heap[*group]) {
	g.in = in
	in.Put(g)
}

// unfile takes the group out of its heap, before its next caller changes.
func (g *group) unfile() {
	if g.in != nil {
		g.in.Remove(g)
		g.in = nil
	}
}

// remove removes a caller that is on no trip.
func (g *group) remove(c *caller) {
	first := g.next() == c
	if first {
		g.unfile()
	}
	if g.callers.Remove(&c.Node); first {
		g.refile()
	}
}

// refile has the group looked at, because its next caller or its keys have changed. It ends a group without callers.
func (g *group) refile() {
	if g.callers.Len() == 0 {
		g.end()
		return
	}
	g.unfile()
	if g.next() != nil {
		g.file(&g.asking.ready)
	}
	g.advance(time.Now())
}

// advance has the groups looked at that this group may have kept from asking.
func (g *group) advance(now time.Time) {
	for _, k := range g.keys {
		k.advance(now)
	}
}

// end forgets a group without callers.
func (g *group) end() {
	g.unfile()
	delete(g.asking.groups, g.name)
	for _, k := range g.keys {
		if k.groups--; k.groups == 0 {
			k.unused()
		}
	}
	g.advance(time.Now())
}
