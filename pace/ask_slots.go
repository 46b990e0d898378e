package pace

import (
	"math"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/fair"
)

// slotKey is the slots of one key, for which groups stand in order of arrival. Only one flight at a time asks for them.
//
// In the lines of an engine the queue has one entry for the key, which says how long its oldest caller has waited and how
// many units all of them want. A signal, or the answer to a flight, tells how many units are free for them. Nothing
// depends on a signal: the key asks for its first caller again within 400 ms, or 50 ms if it hears no signals.
type slotKey struct {
	asking *asking
	name   string // in asking.slots
	key    string
	lined  bool
	slots  weir.Request // with any cost
	lane   int          // of the engine
	token  uint64
	uses   int // groups that ask for it

	standing fair.Heap[*use] // by the arrival of their next callers
	want     int64           // the units of all callers that stand and are not in flight
	busy     int             // flights

	told    int64 // units that are free for these callers; 0 if that is not known
	minAge  time.Duration
	during  enginekit.LineSignal // what a signal told during a flight
	dry     int                  // callers of the last flight that a rate refused
	more    int                  // callers to ask for at least: see pick
	idle    bool                 // it asked for lack of news the last time
	polls   bool                 // it was passed over, so it does not rely on signals until it hears one
	hears   bool                 // signals reached the process when it asked the last time, and the line knows that
	inside  bool                 // the line has an entry of the queue
	stood   bool                 // an answer of this flight said so
	served  bool                 // a caller of this flight goes
	vain    int                  // flights in a row whose answer named units and admitted nobody, for want of units
	changed bool                 // the line does not know the first caller

	lastAsk  time.Time
	look     time.Time // when to ask again, by the last answer; zero if it named no time
	refusals int       // of an engine without lines
	wake     appointment
}

// The times after which a key asks again without news.
const (
	heartbeat = 400 * time.Millisecond
	poll      = 50 * time.Millisecond
	soon      = 20 * time.Millisecond
)

// mostVain bounds the flights in a row for units that an engine names and then refuses. After them the key polls.
const mostVain = 8

func slotName(key string, lined bool) string {
	if lined {
		return key + inLine
	}
	return key
}

// slotKey returns the key of that name.
func (a *asking) slotKey(key string, lined bool, lane int, slots weir.Request) *slotKey {
	name := slotName(key, lined)
	k := a.slots[name]
	if k == nil {
		a.last++
		k = &slotKey{asking: a, name: name, key: key, lined: lined, lane: lane, slots: slots, token: a.last}
		k.wake = newAppointment(func() { a.due = append(a.due, k) })
		k.standing = fair.NewHeap(
			func(a, b *use) bool { return a.group.next().Arrival < b.group.next().Arrival },
			func(u *use) *int { return &u.place })
		a.slots[name], a.tokens[k.token] = k, k
	}
	return k
}

func (k *slotKey) costOf(c *caller) int64 { return onKey(c.requests, k.key).Cost }

// taken reports whether callers of the queue ask or stand for the slots.
func (k *slotKey) taken() bool { return k.busy > 0 || k.standing.Len() > 0 }

// oldest returns the arrival of the first caller.
func (k *slotKey) oldest() uint64 {
	if k.standing.Len() == 0 {
		return math.MaxUint64
	}
	return k.standing.First().group.next().Arrival
}

// rest describes the callers that stand and are not in flight.
func (k *slotKey) rest() enginekit.LineKey {
	r := enginekit.LineKey{Slots: k.slots, Token: k.token}
	if k.standing.Len() > 0 {
		c := k.standing.First().group.next()
		r.Slots.Cost, r.Since, r.Want = k.costOf(c), c.since, k.want
	}
	var oldest *caller
	for g := range k.asking.stayers {
		for _, u := range g.uses {
			if c := g.next(); u.key == k && !u.stands && g.stands() && c != nil && (oldest == nil || c.Arrival < oldest.Arrival) {
				oldest = c
				r.Keep.Lease, r.Keep.Since, r.Keep.Units = c.lease, c.since, k.costOf(c)
			}
		}
	}
	return r
}

// pump asks if there is a reason to, and otherwise plans when to ask.
func (k *slotKey) pump() {
	switch {
	case k.busy > 0:
	case k.standing.Len() == 0 && k.inside:
		k.asking.newFlight(k, true).send()
	case k.standing.Len() == 0:
		k.asking.agenda.Remove(&k.wake)
		if k.uses == 0 {
			delete(k.asking.slots, k.name)
			delete(k.asking.tokens, k.token)
		}
	case k.told > 0 && k.vain < mostVain:
		k.pick()
	default:
		k.asking.agenda.plan(&k.wake, k.due())
	}
}

// pick asks for the callers that the units are for, the oldest first, and one at least. Where rates refused callers, it asks
// for twice as many the next time, so that a row of them costs few calls.
func (k *slotKey) pick() {
	k.idle = false
	f := k.asking.newFlight(k, k.lined)
	now := time.Now()
	for sum := int64(0); k.standing.Len() > 0 && len(f.callers) < enginekit.MaxLineCallers; {
		g := k.standing.First().group
		c := g.next()
		n := k.costOf(c)
		enough := !k.lined || sum+n > k.told && len(f.callers) >= k.more
		if len(f.callers) > 0 && (enough || now.Sub(c.since) < k.minAge) {
			break
		}
		f.take(g)
		sum += n
	}
	f.send()
}

// due returns when to ask again without news.
func (k *slotKey) due() time.Time {
	if !k.lined {
		at := k.lastAsk.Add(backOff(max(k.refusals, 1)))
		if !k.look.IsZero() && k.look.Before(at) {
			return k.look
		}
		return at
	}
	every := heartbeat
	if k.polls || !k.hears || k.vain >= mostVain {
		every = poll
	}
	at, grid := k.lastAsk.Add(every), every/2
	if k.idle {
		grid = every
	}
	at = at.Add(-time.Duration(at.UnixNano() % int64(grid))) // so that keys ask together
	next := k.lastAsk.Add(shortestPause)
	switch {
	case !k.inside || k.more > 0: // a rate refused those in front, and those behind may go
		return next
	case k.changed:
		at = earliest(at, k.lastAsk.Add(soon))
	}
	if !k.look.IsZero() {
		at = earliest(at, k.look)
	}
	if at.Before(next) {
		return next
	}
	return at
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// askDue asks for the first callers of the keys whose time has come, those of one lane in one flight.
func (a *asking) askDue() {
	flights := map[int]*flight{}
	for _, k := range a.due {
		switch {
		case k.busy > 0 || k.standing.Len() == 0:
		case !k.lined:
			k.told = 1
			k.pump()
		default:
			f := flights[k.lane]
			if f == nil || len(f.callers) == enginekit.MaxLineCallers {
				f.send()
				f = a.newFlight(nil, true)
				flights[k.lane] = f
			}
			k.idle = true
			for range max(k.more, 1) {
				if k.standing.Len() > 0 && len(f.callers) < enginekit.MaxLineCallers {
					f.take(k.standing.First().group)
				}
			}
		}
	}
	a.due = nil
	for _, f := range flights {
		f.send()
	}
}

// learn notes what an answer tells. What came during the flight counts if the last answer tells nothing.
func (k *slotKey) learn(news enginekit.LineNews) {
	k.polls = k.polls || news.Passed
	if k.busy > 0 { // another flight tells of the key, too
		if news.Units > 0 {
			k.during = enginekit.LineSignal{Units: news.Units, MinAge: news.MinAge}
		}
		return
	}
	k.told, k.minAge = news.Units, news.MinAge
	if k.told == 0 {
		k.told, k.minAge = k.during.Units, k.during.MinAge
	}
	k.during = enginekit.LineSignal{}
	k.look = time.Time{}
	if news.Look > 0 {
		k.look = time.Now().Add(news.Look)
	}
	k.more, k.dry = min(2*k.dry, enginekit.MaxLineCallers), 0
	if k.told > 0 && k.stood && !k.served {
		k.vain++
	} else {
		k.vain = 0
	}
	k.stood, k.served = false, false
}

// hear asks for the callers that a signal is for. It is called on a goroutine of the engine.
func (a *asking) hear(signal enginekit.LineSignal) {
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	if signal.Err != nil {
		a.queue.fail(signal.Err)
		return
	}
	k := a.tokens[signal.Token]
	if k == nil {
		return
	}
	k.polls = false
	signal.Units = max(signal.Units, 1)
	if k.busy > 0 {
		k.during = signal
		return
	}
	k.told, k.minAge = signal.Units, signal.MinAge
	k.pump()
}

// standFor has the group stand for the slots that refused its first caller.
func (g *group) standFor(refusal *enginekit.LineCaller) {
	keys := map[string]bool{}
	for _, i := range refusal.Stands {
		keys[keyOf(&refusal.Requests[i])] = true
	}
	g.stand(func(u *use) bool { return keys[u.key.key] })
	if !g.stands() { // nonsense
		g.sleep(longestPause)
	}
	for _, u := range g.uses {
		if u.stands && !g.lined {
			u.key.refusals++
			u.key.look = time.Now().Add(min(refusal.Decision.RetryAfter, longestPause))
		}
	}
}

// wakeKeys has a group ask again whose callers went or were not decided: its keys may have more units.
func (g *group) wakeKeys() {
	for _, u := range g.uses {
		if !g.lined {
			u.key.told, u.key.refusals = 1, 0
		}
	}
	if len(g.uses) > 0 && !g.stands() {
		g.stand(func(u *use) bool { return g.lined || u == g.uses[0] })
	}
}
