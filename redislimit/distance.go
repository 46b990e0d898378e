package redislimit

import (
	"cmp"
	"time"
)

// distance measures how far away a server is, and says how many calls may leave without waiting for others. Nearby,
// callers that wait for a call share the next one, which costs less. At a distance they would wait for the better part
// of a round trip. In between, more calls may leave as long as they do not wait for a processor, on either side.
type distance struct {
	most int // calls in flight at a time

	calls int           // calls in flight up to which a decision leaves at once and alone; 1 nearby, and 0 before the second answer
	gap   time.Duration // how long after the last call another one leaves with what came meanwhile; 0: not before a return

	few, many shortest  // round trips of calls of few and of many decisions
	until     time.Time // the end of this window
	measured  int       // round trips so far, up to fewest

	group   int           // calls since calls was last adjusted
	least   time.Duration // the shortest round trip of these
	highest int           // calls in flight at a time, at most, meanwhile
	waited  bool          // a decision waited meanwhile, because calls were in flight
}

// A round trip shorter than near is no distance: it is what a call takes on one machine. From far on callers rely on
// timers, which are up to 1 ms late in an idle program. Round trips exclude what each decision takes.
const (
	near           = 120 * time.Microsecond
	far            = time.Millisecond
	fewest         = 2 // round trips that make a distance: the first may have waited for a connection or the script
	fewDecisions   = 8
	eachOfFew      = 2500 * time.Nanosecond // what a decision takes at least
	eachOfMany     = 8 * time.Microsecond   // and at most
	perCall        = 12 * time.Microsecond  // of a round trip: more calls at a time would only wait for each other
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

// measure notes the round trip of a call.
func (d *distance) measure(now time.Time, took time.Duration, decisions int) {
	if now.After(d.until) {
		d.few, d.many = shortest{before: d.few.least}, shortest{before: d.many.least}
		d.until = now.Add(distanceWindow)
	}
	own := max(took-time.Duration(decisions)*eachOfFew, 1)
	if decisions <= fewDecisions {
		d.few.see(own)
	} else {
		d.many.see(max(took-time.Duration(decisions)*eachOfMany, 1))
	}
	if d.measured++; d.measured < fewest {
		return
	}
	d.measured = fewest
	trip := cmp.Or(d.few.trip(), d.many.trip()) // calls of many decisions tell less
	switch {
	case trip < near:
		d.calls, d.gap = 1, 0
	case trip < far:
		d.adjust(trip, own)
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
