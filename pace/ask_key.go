package pace

import (
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/fair"
)

// askKey is the state of a key, under the same limits, that groups ask for.
type askKey struct {
	asking  *asking
	request weir.Request   // with any cost
	links   []weir.Request // each with nothing in its place; nil for a request that has nothing
	names   []string       // names of all of them
	groups  int            // groups that need it
	asleep  fair.Heap[*group]
	behind  fair.Heap[*group] // parked for another reason: see keeps

	// The last refusal: no caller asks for cost or more until then. retryAt is the instant that the engine named, which may be
	// later, because units can come back before.
	until, retryAt time.Time
	cost           int64
	refusedBy      cause
	wake, expiry   appointment

	room   int64   // estimate of the engine's units, besides those that are asked for
	trip   *trip   // that asks for it; one at a time, so that callers go in order
	head   *caller // the oldest on it
	probed bool    // the trip asks for more than the room

	won, lost, broke bool // a caller of this trip was granted or refused the key, or the engine failed
	failures         int  // failures of the engine in a row
	watch            *slotWatch
}

// cause says what refused.
type cause uint8

const (
	byNothing cause = iota
	byRate
	bySlots
	byFault
)

// The bounds of the time until a key is asked for again.
const (
	shortestPause = time.Millisecond      // after a refusal until now: no engine is asked without a pause
	firstPause    = 10 * time.Millisecond // after a failure; doubles with each
	longestPause  = time.Second           // every retry instant is an upper bound
	together      = 50 * time.Millisecond // keys that are asked for without news share trips
)

func backOff(tries int) time.Duration { return min(firstPause<<min(tries-1, 10), longestPause) }

func (a *asking) newKey(name string, request weir.Request) *askKey {
	k := &askKey{asking: a, request: request, asleep: newGroups(), behind: newGroups()}
	k.wake, k.expiry = newAppointment(func() { k.advance(time.Now()) }), newAppointment(k.end)
	a.keys[name] = k
	if request.Rule != nil {
		k.names = []string{nameOf(&request)}
		if request.Otherwise != nil {
			k.links = weir.Kit.Links([]weir.Request{request})
			k.names = namesIn(k.links)
		}
		for _, name := range k.names {
			a.names[name] = append(a.names[name], k)
		}
		if asksForSlots(request) {
			k.watch = newSlotWatch(k)
		}
	}
	return k
}

// unused forgets a key that no group asks for any more. It keeps a key with slots for a second: otherwise a process with
// few callers would not know how long it has been granted them.
func (k *askKey) unused() {
	if k.watch == nil {
		k.end()
	} else {
		k.asking.agenda.plan(&k.expiry, time.Now().Add(longestPause))
	}
}

func (k *askKey) end() {
	a := k.asking
	a.agenda.Remove(&k.wake)
	delete(a.keys, keyOf(&k.request))
	for _, name := range k.names {
		if a.names[name] = slices.DeleteFunc(a.names[name], func(o *askKey) bool { return o == k }); len(a.names[name]) == 0 {
			delete(a.names, name)
		}
	}
	if k.watch != nil {
		k.watch.end()
	}
}

func (k *askKey) costOf(c *caller) int64 { return onKey(c.requests, keyOf(&k.request)).Cost }

func (k *askKey) slots() bool { return k.refusedBy == bySlots }

// sleeps reports whether a cost is not asked for now.
func (k *askKey) sleeps(cost int64, now time.Time) bool {
	return cost >= k.cost && now.Before(k.until)
}

// keeps reports whether the next caller of a group must not ask now: the key sleeps, its units are being asked for, or
// an older group that wants more of it waits. That group keeps the key for a second, and then lets others go for a
// second, in turn.
func (k *askKey) keeps(g *group, now time.Time) bool {
	cost := k.costOf(g.next())
	switch {
	case k.sleeps(cost, now):
		return true
	case k.trip != nil && (k.trip != k.asking.trip || k.probed && k.room < cost):
		return true
	}
	if k.trip != nil && k.goesFirst(k.head, g.next(), now) {
		return true
	}
	return k.asleep.Len() > 0 && k.goesFirst(k.asleep.First().next(), g.next(), now)
}

// goesFirst reports whether an older caller that was refused keeps the key from one that asks for less.
func (k *askKey) goesFirst(older, c *caller, now time.Time) bool {
	refused := !older.refused.IsZero()
	return refused && older.Arrival < c.Arrival && k.costOf(older) > k.costOf(c) && now.Sub(older.refused)/longestPause%2 == 0
}

// park keeps a group at the key.
func (k *askKey) park(g *group, now time.Time) {
	if k.sleeps(k.costOf(g.next()), now) {
		if c := g.next(); c.refused.IsZero() {
			c.refused = now
		}
		g.file(&k.asleep)
		return
	}
	g.file(&k.behind)
}

// advance makes the oldest parked group ready that may ask for the key.
func (k *askKey) advance(now time.Time) {
	for {
		g := k.first(now)
		if g == nil {
			return
		}
		kept := k.keeps(g, now)
		if kept && !(g.in == &k.behind && k.sleeps(k.costOf(g.next()), now)) {
			return
		}
		g.unfile()
		if !kept {
			g.file(&k.asking.ready)
			return
		}
		k.park(g, now)
	}
}

// first returns the oldest parked group, except one that sleeps, or nil.
func (k *askKey) first(now time.Time) (g *group) {
	if k.asleep.Len() > 0 && !k.sleeps(k.costOf(k.asleep.First().next()), now) {
		g = k.asleep.First()
	}
	if k.behind.Len() > 0 && (g == nil || k.behind.First().next().Arrival < g.next().Arrival) {
		g = k.behind.First()
	}
	return g
}

// asked notes that a caller travels.
func (k *askKey) asked(t *trip, c *caller) {
	now, cost := time.Now(), k.costOf(c)
	if k.trip == nil {
		k.trip, k.head, k.probed = t, c, false
		if k.refusedBy != byNothing && !now.Before(k.until) {
			k.woke(now)
		}
	}
	if k.room >= cost {
		k.room -= cost
	} else {
		k.room, k.probed = 0, true
	}
}

// woke notes that the time of a refusal has passed: the engine may have units for the cost that it refused. Under a rate one
// more caller travels, so that its refusal tells the next instant.
func (k *askKey) woke(now time.Time) {
	switch k.refusedBy {
	case byRate:
		k.room = max(k.room, k.cost)
	case bySlots:
		k.room = max(k.room, (slotsTogether-1)*k.cost)
	}
}

// granted takes in what the engine has left after a grant.
func (k *askKey) granted(left int64, named bool) {
	k.won = true
	if named {
		k.room = left
	} else {
		k.room = max(k.room, left)
	}
}

// refused takes in a refusal of a cost on a trip, unless the trip also refused a smaller one.
func (k *askKey) refused(d weir.Decision, cost int64, slots bool) {
	if k.lost && cost >= k.cost {
		return
	}
	k.lost, k.cost, k.room, k.refusedBy = true, cost, 0, byRate
	if slots {
		k.refusedBy = bySlots
	}
	k.retryAt = time.Now().Add(min(d.RetryAfter, 24*time.Hour))
}

// landed plans when to ask next, after a trip that has asked for the key.
func (k *askKey) landed() {
	now := time.Now()
	k.trip, k.head, k.probed = nil, nil, false
	if k.won && k.watch != nil {
		k.watch.granted(now)
	}
	switch {
	case k.broke:
		k.failures++
		k.cost, k.room, k.refusedBy = 0, 0, byFault
		k.until = now.Add(backOff(k.failures))
	case k.lost && k.refusedBy == byRate:
		k.failures = 0
		k.until = earliest(latest(k.retryAt, now.Add(shortestPause)), k.asking.poll(now.Add(longestPause)))
	case k.lost || k.watch != nil && k.won && k.room == 0:
		k.failures = 0
		k.watch.landed(now)
	case k.won:
		k.failures = 0
		if k.room >= k.cost || !k.until.After(now) {
			k.refusedBy, k.until = byNothing, time.Time{}
		}
	}
	k.won, k.lost, k.broke = false, false, false
	if k.until.After(now) {
		k.asking.agenda.plan(&k.wake, k.until)
	} else {
		k.asking.agenda.Remove(&k.wake)
	}
}

// wakeAt has the key asked for at an instant, unless it is asked for before.
func (k *askKey) wakeAt(at time.Time) {
	if at.Before(k.until) {
		k.until = at
		k.asking.agenda.plan(&k.wake, at)
	}
}

// cameBack has the key asked for, because this process gave back units that it had held for a time.
func (k *askKey) cameBack(held time.Duration) {
	if k.watch != nil {
		k.watch.released(held)
		return
	}
	k.rouse()
}

// rouse ends the sleep of the key.
func (k *askKey) rouse() {
	k.until = time.Time{}
	k.advance(time.Now())
}

// poll returns when to ask for a key without news at the latest: the keys of a process are asked for together, and those of
// others at other times.
func (a *asking) poll(at time.Time) time.Time {
	return at.Add(together - time.Duration(at.UnixNano()+int64(a.phase))%together)
}

func latest(a, b time.Time) time.Time {
	if b.Before(a) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
