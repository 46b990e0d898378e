package httplimit

import (
	"cmp"
	"slices"
	"time"
)

// TransportStats are the counters of a Transport.
type TransportStats struct {
	Requests uint64 // calls of RoundTrip
	Sent     uint64 // requests sent, with retries
	Refused  uint64 // answers that were refusals
	Retries  uint64
	Failed   uint64 // requests that were not sent
	Waiting  int    // requests that wait now
	Keys     int    // remembered keys
	Delayed  map[Reason]Delayed
}

// Delayed counts the requests that were held back for a Reason, and how long they were. A request can count under several
// reasons.
type Delayed struct {
	Requests uint64
	Time     time.Duration
}

// KeyWait is a key with waiting requests.
type KeyWait struct {
	Key     string
	Waiting int
	Reason  Reason    // why the first of them waits
	Until   time.Time // until when; zero if unknown
}

// Stats returns the counters.
func (t *Transport) Stats() TransportStats {
	c := &t.counters
	s := TransportStats{
		Requests: c.requests.Load(), Sent: c.sent.Load(), Refused: c.refused.Load(), Retries: c.retries.Load(),
		Failed: c.failed.Load(), Waiting: int(c.waiting.Load()), Delayed: map[Reason]Delayed{},
	}
	for i, reason := range reasons {
		if n := c.delayed[i].requests.Load(); n > 0 {
			s.Delayed[reason] = Delayed{n, time.Duration(c.delayed[i].time.Load())}
		}
	}
	t.gates.mu.Lock()
	defer t.gates.mu.Unlock()
	s.Keys = len(t.gates.byKey)
	return s
}

// Waits returns up to n keys with waiting requests, those with the most of them first.
func (t *Transport) Waits(n int) []KeyWait {
	var waits []KeyWait
	for _, g := range t.gates.all() {
		g.mu.Lock()
		if g.waiting > 0 {
			waits = append(waits, KeyWait{g.key, g.waiting, g.reason, g.until})
		}
		g.mu.Unlock()
	}
	slices.SortFunc(waits, func(a, b KeyWait) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Key, b.Key))
	})
	return waits[:min(max(n, 0), len(waits))]
}
