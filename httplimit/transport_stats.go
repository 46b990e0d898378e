package httplimit

import (
	"cmp"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/httplimit/internal/obey"
)

// Reason says why a request waits.
type Reason string

// The reasons for which a Transport holds requests back.
const (
	ReasonFirst = Reason(obey.First) // the first answer of a new host, or after a refusal, is awaited
	ReasonPause = Reason(obey.Pause) // the server has asked for a pause
	ReasonQuota = Reason(obey.Quota) // the units that the server has announced are used up
	ReasonSlow  = Reason(obey.Slow)  // the server has refused without saying when to come back
	ReasonDelay = Reason(obey.Delay) // TransportOptions.Delay
	ReasonRules = Reason("rules")    // TransportOptions.Rules
	ReasonOrder = Reason("order")    // earlier requests of the same key
	ReasonRetry = Reason("retry")    // the pause of one request before a retry
)

var reasons = [...]Reason{ReasonFirst, ReasonPause, ReasonQuota, ReasonSlow, ReasonDelay, ReasonRules, ReasonOrder, ReasonRetry}

// EventKind is the kind of a TransportEvent.
type EventKind int

const (
	EventHeld      EventKind = iota // the request is held back, for the Reason
	EventRefused                    // the server has answered with a refusal
	EventRetry                      // the request will be sent again
	EventUndecided                  // the engine failed, and the request is sent without the rules
)

// TransportEvent is what TransportOptions.Observe sees.
type TransportEvent struct {
	Kind   EventKind
	Key    string
	Reason Reason
	// Name is the server's name of the exhausted quota, or that of the refusing rule.
	Name string
	// Wait is how long the request will wait, as far as is known: 0 if it is unknown.
	Wait    time.Duration
	Status  int // of a refusal
	Attempt int // of a retry; the second attempt is the first retry
	Err     error
}

// TransportStats are the counters of a Transport.
type TransportStats struct {
	Requests  uint64 // calls of RoundTrip
	Sent      uint64 // requests sent, with retries
	Refused   uint64 // answers that were refusals
	Retries   uint64
	Failed    uint64 // requests that were not sent
	Undecided uint64 // requests sent although the engine failed
	Waiting   int    // requests that wait now
	Keys      int    // remembered keys
	Held      map[Reason]Held
}

// Held counts the requests that were held back for a Reason, and how long they were. A request can count under several
// reasons.
type Held struct {
	Requests uint64
	Time     time.Duration
}

// KeyWait is a key with waiting requests.
type KeyWait struct {
	Key     string
	Waiting int
	Reason  Reason    // why the first of them waits
	Until   time.Time // until when, as far as is known; zero if unknown
}

// counters are the counters of a Transport.
type counters struct {
	requests, sent, refused, retries, failed, undecided atomic.Uint64
	waiting                                             atomic.Int64
	held                                                [len(reasons)]struct {
		requests atomic.Uint64
		time     atomic.Int64
	}
}

// Stats returns the counters.
func (t *Transport) Stats() TransportStats {
	c := &t.counters
	s := TransportStats{
		Requests: c.requests.Load(), Sent: c.sent.Load(), Refused: c.refused.Load(), Retries: c.retries.Load(),
		Failed: c.failed.Load(), Undecided: c.undecided.Load(), Waiting: int(c.waiting.Load()), Held: map[Reason]Held{},
	}
	for i, reason := range reasons {
		if n := c.held[i].requests.Load(); n > 0 {
			s.Held[reason] = Held{n, time.Duration(c.held[i].time.Load())}
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

func (s *gates) all() []*gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*gate, 0, len(s.byKey))
	for _, g := range s.byKey {
		all = append(all, g)
	}
	return all
}

// observe passes an event on.
func (k *keeper) observe(r *http.Request, e TransportEvent) {
	if k.Observe == nil {
		return
	}
	if e.Wait == obey.Never {
		e.Wait = 0
	}
	k.Observe(r, e)
}

// hold notes that the request waits for a reason.
func (w *wait) hold(reason Reason, name string, d time.Duration) {
	if w.reason == reason {
		return
	}
	w.settle()
	w.reason, w.since = reason, time.Now()
	g := w.gate
	g.mu.Lock()
	if !w.held {
		g.waiting++
	}
	if reason != ReasonOrder {
		g.reason, g.until = reason, time.Time{}
		if d != obey.Never {
			g.until = w.since.Add(d)
		}
	}
	g.mu.Unlock()
	if !w.held {
		w.held = true
		w.transport.counters.waiting.Add(1)
	}
	w.transport.observe(w.request, TransportEvent{Kind: EventHeld, Key: g.key, Reason: reason, Name: name, Wait: d})
}

// asked is about what an engine needs to admit a request. Less is not a wait for the rules.
const asked = time.Millisecond

// settle counts the time that the request has waited for its reason.
func (w *wait) settle() {
	if w.reason == "" {
		return
	}
	i, waited := slices.Index(reasons[:], w.reason), time.Since(w.since)
	if w.reason = ""; reasons[i] == ReasonRules && waited < asked {
		return
	}
	held := &w.transport.counters.held[i]
	held.requests.Add(1)
	held.time.Add(int64(waited))
}

// done ends the wait.
func (w *wait) done() {
	w.settle()
	if !w.held {
		return
	}
	w.transport.counters.waiting.Add(-1)
	w.gate.mu.Lock()
	w.gate.waiting--
	w.gate.mu.Unlock()
}
