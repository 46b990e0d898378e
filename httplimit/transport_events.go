package httplimit

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit/internal/obey"
	"github.com/weirflow/weir/internal/duration"
)

// Reason says why a request waits.
type Reason string

// The reasons why a Transport holds requests back.
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
	EventDelayed EventKind = iota // the request is held back, for the Reason
	EventRefused                  // the server has answered with a refusal
	EventRetry                    // the request will be sent again
)

// TransportEvent is what TransportOptions.Observe sees.
type TransportEvent struct {
	Kind   EventKind
	Key    string
	Reason Reason
	// Name is the server's name of the exhausted quota, or the name of the refusing rule.
	Name string
	// Wait is how long the request will wait, or 0 if that is unknown.
	Wait    time.Duration
	Status  int // status of a refusal
	Attempt int // number of a retry; the second attempt is the first retry
	Err     error
}

// counters are the counters of a Transport.
type counters struct {
	requests, sent, refused, retries, failed atomic.Uint64
	waiting                                  atomic.Int64
	delayed                                  [len(reasons)]struct {
		requests atomic.Uint64
		time     atomic.Int64
	}
}

// events passes events on, to TransportOptions.Observe.
type events func(*http.Request, TransportEvent)

func (observe events) tell(r *http.Request, e TransportEvent) {
	if observe == nil {
		return
	}
	if e.Wait == obey.Never {
		e.Wait = 0
	}
	observe(r, e)
}

// TransportError is returned for a request that was not sent. It wraps the reason: a *weir.WaitError with the time
// that the request would have to wait, weir.ErrQueueFull, an error of the context, or one of the engine.
type TransportError struct {
	Key    string
	Reason Reason // what the request would have waited for; empty if unknown
	Err    error
}

func (e *TransportError) Error() string {
	text := "httplimit: transport: " + e.Key + ": "
	if e.Reason == "" {
		return text + e.Err.Error()
	}
	why := waitsFor[e.Reason]
	late, isLate := errors.AsType[*weir.WaitError](e.Err)
	switch {
	case isLate && late.Need == weir.Never:
		return text + why + " would not end within " + bound(late)
	case isLate:
		return text + why + " would take " + duration.Spoken(duration.Rounded(late.Need)) + ", above " + bound(late)
	case e.Err == weir.ErrQueueFull:
		return text + "MaxWaiting requests are waiting already"
	}
	return text + why + ": " + e.Err.Error()
}

// waitsFor names the wait for each reason.
var waitsFor = map[Reason]string{
	ReasonFirst: "the wait for a first answer", ReasonPause: "the pause that the server asks for", ReasonQuota: "the wait for the server's quota",
	ReasonSlow: "the pause after refusals", ReasonDelay: "the delay between requests", ReasonRules: "the wait for the rules",
	ReasonOrder: "the wait behind earlier requests", ReasonRetry: "the pause before a retry",
}

// bound names the bound of a wait.
func bound(late *weir.WaitError) string {
	text := duration.Spoken(duration.Rounded(late.Bound))
	if late.Deadline {
		return "the " + text + " that the request's context has left"
	}
	return "MaxPause, " + text
}

func (e *TransportError) Unwrap() error { return e.Err }

// Timeout reports whether the context's deadline was the bound, like errors of package net.
func (e *TransportError) Timeout() bool { return errors.Is(e.Err, context.DeadlineExceeded) }
