package redislimit

import "time"

// distance measures how far away a server is, and says how many calls may leave without waiting for others. Nearby,
// callers that wait for a call share the next one, which costs less. At a distance they would wait for the better part
// of a round trip.
type distance struct {
	most int // calls in flight at a time

	calls int           // calls in flight up to which a decision leaves at once and alone; 0 and 1 nearby
	gap   time.Duration // how long after the last call another one leaves with the decisions that came meanwhile

	least, before time.Duration // round trips of this window and of the one before; 0 if there were none
	until         time.Time     // the end of this window
	measured      int           // round trips so far, up to fewest
}

// A round trip shorter than near is no distance. It includes what each decision takes, which is not distance either.
const (
	near           = time.Millisecond
	fewest         = 8 // round trips that make a distance
	perDecision    = 8 * time.Microsecond
	mostCalls      = 32
	leastGap       = 100 * time.Microsecond
	distanceWindow = 2 * time.Second
)

// measure notes the round trip of a call. The least of the last seconds counts, because the others include waiting.
func (d *distance) measure(now time.Time, took time.Duration, decisions int) {
	took = max(took-time.Duration(decisions)*perDecision, 1)
	if now.After(d.until) {
		d.before, d.least, d.until = d.least, 0, now.Add(distanceWindow)
	}
	shorter := d.least == 0 || took < d.least
	if shorter {
		d.least = took
	}
	if d.measured < fewest {
		d.measured++
	} else if !shorter {
		return
	}
	if d.measured < fewest {
		return
	}
	trip := d.least
	if d.before > 0 {
		trip = min(trip, d.before)
	}
	if trip < near {
		d.calls, d.gap = 1, 0
		return
	}
	d.gap = max(trip/mostCalls, leastGap)
	d.calls = min(int(trip/d.gap), d.most)
}
