package calls

import (
	"sync"
	"sync/atomic"
	"time"
)

// distance measures how far away a server is, and says how many calls may leave without waiting for others. Nearby,
// callers that wait for a call share the next one, which costs less. At a distance they would wait for the better part
// of a round trip. In between, more calls may leave as long as they do not wait for a processor, on either side.
type distance struct {
	most    int    // calls in flight at a time
	all     *trips // those of all lanes of the engine
	several bool   // there are other lanes
	own     trips

	calls int           // with fewer calls in flight, a decision leaves at once and alone; 1 nearby, and 0 before the second answer
	gap   time.Duration // how long after the last call another one leaves with the decisions queued meanwhile; 0: not before a return

	group   int           // calls since calls was last adjusted
	least   time.Duration // the shortest round trip of these
	highest int           // calls in flight at a time, at most, meanwhile
	waited  bool          // a decision waited meanwhile, because calls were in flight
}

// A round trip shorter than near is no distance: a call on one machine takes as long. From far on callers rely on
// timers, which are up to 1 ms late in an idle program. Round trips exclude the time of each decision.
const (
	near           = 120 * time.Microsecond
	far            = time.Millisecond
	sure           = 32 // round trips of one lane that show a master farther away than the others
	fewDecisions   = 8
	eachOfFew      = 2500 * time.Nanosecond // the least time of a decision
	eachOfMany     = 8 * time.Microsecond   // and the most
	perCall        = 12 * time.Microsecond  // part of a round trip for each call in flight: more would only wait for each other
	mostCalls      = 32
	beyond         = 4 // calls of many decisions in flight besides those of one
	groupSize      = 16
	crowd          = 4 // calls in flight that may wait for each other; fewer are slow for other reasons
	leastGap       = 100 * time.Microsecond
	distanceWindow = 2 * time.Second
)

// shortest is the least round trip of this window and of the one before; 0 if there were none. The others include waiting.
type shortest struct{ least, before time.Duration }

func (s *shortest) see(trip time.Duration) {
	if s.least == 0 || trip < s.least {
		s.least = trip
	}
}

func (s *shortest) trip() time.Duration {
	if s.least == 0 || s.before != 0 && s.before < s.least {
		return s.before
	}
	return s.least
}

// trips are the round trips of some calls.
type trips struct {
	flying atomic.Int64
	left   atomic.Int64 // calls so far

	mu        sync.Mutex
	few, many shortest  // of calls of few and of many decisions
	alone     shortest  // of few decisions, without another call at that time; a window without one keeps that before it
	until     time.Time // the end of this window
	measured  int       // round trips in this window
	before    int       // and in the one before
}

// flight is a call whose round trip is measured.
type flight struct {
	began     time.Time
	number    int64
	decisions int
	alone     bool
}

func (t *trips) leaves(decisions int) flight {
	f := flight{number: t.left.Add(1), decisions: decisions, alone: t.flying.Add(1) == 1}
	f.began = time.Now()
	return f
}

// returns ends a flight. It reports whether no other call was in flight meanwhile.
func (t *trips) returns(f flight) (alone bool) {
	t.flying.Add(-1)
	return f.alone && t.left.Load() == f.number
}

// see notes the round trip of a call. It returns the shortest of the last seconds, and their number.
func (t *trips) see(now time.Time, took time.Duration, decisions int, alone bool) (trip time.Duration, measured int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.After(t.until) {
		t.few, t.many = shortest{before: t.few.least}, shortest{before: t.many.least}
		t.measured, t.before = 0, t.measured
		if t.alone.least > 0 {
			t.alone = shortest{before: t.alone.least}
		}
		t.until = now.Add(distanceWindow)
	}
	own := max(took-time.Duration(decisions)*eachOfFew, 1)
	switch {
	case decisions > fewDecisions:
		t.many.see(max(took-time.Duration(decisions)*eachOfMany, 1))
	case alone:
		t.alone.see(own)
		fallthrough
	default:
		t.few.see(own)
	}
	t.measured++
	return t.trip(), t.measured + t.before
}

// trip returns the shortest round trip. While a busy machine nearby answers, calls also take up to 1 ms. So only a call
// alone shows that the server is that far away.
func (t *trips) trip() time.Duration {
	trip := t.few.trip()
	if trip == 0 {
		trip = t.many.trip() // calls of many decisions tell less
	}
	if trip < far {
		return min(trip, t.alone.trip())
	}
	return trip
}

// measure notes the round trip of a call. Some lanes of a cluster see only round trips that waited for a processor, so
// the shortest one of all lanes counts, unless the lane's master is certainly farther away.
func (d *distance) measure(now time.Time, f flight) {
	took, alone := now.Sub(f.began), d.all.returns(f)
	if f.number == 1 { // it may have waited for a connection or the script
		return
	}
	trip, _ := d.all.see(now, took, f.decisions, alone)
	if d.several {
		if own, n := d.own.see(now, took, f.decisions, alone); own >= far && n >= sure {
			trip = own
		}
	}
	switch {
	case trip < near:
		d.calls, d.gap = 1, 0
	case trip < far:
		d.adjust(trip, max(took-time.Duration(f.decisions)*eachOfFew, 1))
	default:
		d.gap = max(trip/mostCalls, leastGap)
		d.calls = min(int(trip/d.gap), d.most)
	}
}

// adjust lets one call more or less leave after each group of calls. If even the quickest of the group took longer than
// the round trip, they wait for a processor, and larger calls cost it less.
func (d *distance) adjust(trip, own time.Duration) {
	bound := max(min(int(trip/perCall), mostCalls, d.most), 1)
	if d.calls == 0 || d.gap > 0 {
		d.calls, d.gap = bound, 0
	}
	if d.least == 0 || own < d.least {
		d.least = own
	}
	if d.group++; d.group < groupSize {
		return
	}
	slow := d.least > trip*9/8
	switch {
	case slow && (d.waited || d.highest >= crowd):
		d.calls = min(d.calls, d.highest) - 1
	case !slow && d.waited:
		d.calls++
	}
	d.calls = max(min(d.calls, bound), 1)
	d.group, d.least, d.highest, d.waited = 0, 0, 0, false
}
