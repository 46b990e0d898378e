package api

import (
	"context"
	"errors"
	"time"

	"github.com/weirflow/weir"
)

// Rule returns the rule in force of a name, or nil. Servers of other protocols than HTTP ask for it.
func (a *API) Rule(name []byte) *weir.Rule { return a.force.Load().rules[string(name)] }

// Failed learns of an error of the engine that another server has answered.
func (a *API) Failed(err error) {
	if a.health.failed(a.why(err)) {
		a.failures.warn(a.log, "the engine could not decide", "error", err)
	}
}

// ErrSlots is returned by Wait for a rule that holds slots.
var ErrSlots = errors.New("the rule holds slots, which a wait could not release; POST /v1/reserve waits for them")

// Wait takes the requests as soon as the engine admits them, for a client of another server. The context ends when the client
// leaves. A refusal is no error. Wait keeps the bounds of /v1/wait, and is counted with it.
func (a *API) Wait(client context.Context, patience time.Duration, requests []weir.Request) (weir.Decision, error) {
	if a.force.Load().leases.shortest(requests) > 0 {
		return weir.Decision{}, ErrSlots
	}
	if a.waits.stopped.Err() != nil {
		return weir.Decision{}, ErrStopping
	}
	c := asker{api: a, asks: requests, client: client, patience: min(patience, a.waits.longest), extend: func(time.Time) {}}
	got, why, err := c.get(c.take)
	if why == reasonStop {
		err = ErrStopping
	}
	if err == nil && a.asked != nil {
		a.asked(requests, got.decision.Allowed)
	}
	return got.decision, err
}
