package pace

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/fair"
)

// group is the callers that ask for the same keys, in order. The first ones may be in flight.
type group struct {
	asking  *asking
	name    string
	lined   bool     // its callers stand in the lines of the engine
	joint   []string // its keys, if there are several
	uses    []*use   // of slots
	callers fair.Queue[*caller]

	flight *flight
	wet    int     // flights since a rate refused a caller
	flying int     // callers in flight
	last   *caller // the last of them

	wake      appointment   // while it sleeps
	notBefore time.Time     // when the engine may admit the first caller, by its last refusal; zero if that is not known
	refusals  int           // by rates, one after the other
	after     time.Duration // during the answer to a flight: until the rates admit the requests afterOf again
	afterOf   []weir.Request
	lost      bool // the last answer was lost, and what it took may stay spent: the next flight asks for one caller
}

// use is the slots of one key that a group asks for.
type use struct {
	group  *group
	key    *slotKey
	want   int64 // of the callers that are not in flight
	stands bool
	place  int // in key.standing
}

func (a *asking) newGroup(name string, lined bool, lane int, requests []weir.Request) *group {
	g := &group{asking: a, name: name, lined: lined, wet: 8}
	if len(requests) > 1 {
		g.joint = keysIn(requests)
	}
	g.wake = newAppointment(func() { a.arrive(g) })
	for _, key := range g.joint {
		a.joint[key]++
	}
	for _, key := range slotKeys(requests) {
		k := a.slotKey(key, lined, lane, onKey(requests, key))
		k.uses++
		g.uses = append(g.uses, &use{group: g, key: k, place: -1})
	}
	a.groups[name] = g
	return g
}

// next returns the first caller that may be asked for besides those in flight, or nil. Callers of several flows fly alone,
// because the order of those behind depends on the answer.
func (g *group) next() *caller {
	switch {
	case g.callers.Len() == 0:
		return nil
	case g.flying == 0:
		return g.callers.First()
	case !g.callers.Single() || g.lined && g.flying >= g.most():
		return nil
	}
	return g.last.Next()
}

// most returns for how many callers to ask at once: for few after a refusal by a rate, and later for twice as many each time.
// Without slots there are two at least, because the one that the rate refuses keeps the place of those behind it.
func (g *group) most() int {
	n := 1 << min(max(g.wet-1, 0), 6)
	if len(g.uses) == 0 {
		return max(n, 2)
	}
	return n
}

// sleeps reports whether the group waits for an instant that the engine named.
func (g *group) sleeps() bool { return g.wake.planned() }

// alter changes the callers of the group, and moves it where it stands.
func (g *group) alter(c *caller, sign int64, change func()) {
	for _, u := range g.uses {
		if u.stands {
			u.key.want -= u.want
			u.key.standing.Remove(u)
		}
	}
	change()
	for _, u := range g.uses {
		u.want += sign * u.key.costOf(c)
		if u.stands {
			u.enter()
		}
	}
}

func (u *use) enter() {
	u.key.want += u.want
	if u.group.next() != nil {
		u.key.standing.Put(u)
	}
}

func (g *group) add(c *caller) {
	c.group = g
	g.alter(c, +1, func() { c.enter(&g.callers) })
}

// remove removes a caller that is not in flight.
func (g *group) remove(c *caller) { g.alter(c, -1, func() { g.callers.Remove(&c.Node) }) }

// fly takes the next caller along.
func (g *group) fly(f *flight) (c *caller) {
	c = g.next()
	g.alter(c, -1, func() { g.flight, g.flying, g.last = f, g.flying+1, c })
	c.flight = f
	return c
}

// land returns a caller from a flight that all callers of the group leave. A caller that goes no longer belongs to it.
func (g *group) land(c *caller, gone, served bool) {
	c.flight = nil
	sign := int64(1)
	if gone {
		sign = 0
	}
	g.alter(c, sign, func() {
		g.flight, g.flying, g.last = nil, 0, nil
		switch {
		case served:
			g.callers.Serve(&c.Node)
		case gone:
			g.callers.Remove(&c.Node)
		}
	})
}

// stand has the group stand for some of its slots, and for no others.
func (g *group) stand(forIt func(*use) bool) {
	for _, u := range g.uses {
		if u.stands {
			u.key.want -= u.want
			u.key.standing.Remove(u)
		}
		if u.stands = forIt != nil && forIt(u); u.stands {
			u.enter()
		}
	}
}

func (g *group) stands() bool {
	return slices.ContainsFunc(g.uses, func(u *use) bool { return u.stands })
}

// newFirst notes that the group has another first caller, for which the engine may answer otherwise.
func (g *group) newFirst() {
	g.refusals = 0
	for _, u := range g.uses {
		k := u.key
		switch {
		case !u.stands || k.standing.Len() == 0 || k.standing.First() != u:
		case g.lined:
			k.changed = true
			k.pump()
		default:
			k.told = 1
			k.pump()
		}
	}
}

// alike returns the number of next callers for which one call asks: those with the same requests, unless each needs a
// reservation or a delay of its own, the order of those behind depends on the answer, or the last answer was lost.
func (g *group) alike() (n int) {
	first, most := g.next(), maxTogether
	if g.lined {
		most = enginekit.MaxLineCallers
	}
	if g.lost || first.acquires && !g.lined || len(g.uses) > 0 || !g.callers.Single() || first.requests[0].Rule.Delays() {
		return 1
	}
	for c := first; c != nil && n < most; c = c.Next() {
		if !g.lined && (c.acquires || !slices.Equal(c.requests, first.requests)) {
			break
		}
		n++
	}
	return n
}

// maxTogether bounds the callers for which one call asks.
const maxTogether = 256

// sleep has the group ask again after a refusal by a rate.
func (g *group) sleep(pause time.Duration) {
	g.refusals++
	g.stand(nil)
	if pause == weir.Never {
		return
	}
	now := time.Now()
	g.notBefore = now.Add(pause)
	if !g.lined {
		pause += g.spread(pause)
	}
	g.asking.agenda.plan(&g.wake, now.Add(max(pause, shortestPause)))
}

// The pauses between two questions.
const (
	shortestPause = time.Millisecond
	firstPause    = 10 * time.Millisecond // about slots, which another process may release; doubles with each refusal
	longestPause  = time.Second
)

// spread returns a random time for a group that was refused again at the named instant, because callers of other
// processes received the same instant. Groups that share a key always spread, so that none of them is always late.
func (g *group) spread(pause time.Duration) time.Duration {
	share := time.Duration(2)
	if len(g.asking.groups) > 1 && (len(g.joint) > 0 || g.asking.joint[g.name] > 0) {
		share = 16
	} else if g.refusals == 1 {
		return 0
	}
	return rand.N(min(pause/share, longestPause) + 1)
}

// tooLate refuses a newcomer whose deadline is before the instant at which the engine may admit the first caller, behind
// which it goes.
func (g *group) tooLate(c *caller) error {
	if g.notBefore.IsZero() || g.callers.Len() == 0 || g.callers.First().flow != c.flow {
		return nil
	}
	return c.tooLate(time.Until(g.notBefore))
}

// arrive has a group ask that was not refused yet, or has slept. It stands behind groups that stand for its slots.
func (a *asking) arrive(g *group) {
	a.agenda.Remove(&g.wake)
	g.notBefore = time.Time{}
	for _, u := range g.uses {
		if u.key.taken() {
			g.stand(func(o *use) bool { return o == u })
			u.key.changed = u.key.changed || u.key.standing.Len() > 0 && u.key.standing.First() == u
			u.key.pump()
			return
		}
	}
	if g.lined {
		g.stand(func(*use) bool { return true })
	}
	f := a.newFlight(nil, g.lined)
	for range g.alike() {
		if len(f.callers) == 0 || g.next() != nil {
			f.take(g)
		}
	}
	f.send()
}

// end forgets a group without callers.
func (a *asking) end(g *group) {
	a.agenda.Remove(&g.wake)
	g.stand(nil)
	delete(a.groups, g.name)
	delete(a.stayers, g)
	for _, key := range g.joint {
		if a.joint[key]--; a.joint[key] == 0 {
			delete(a.joint, key)
		}
	}
	for _, u := range g.uses {
		u.key.uses--
		u.key.pump()
	}
}
