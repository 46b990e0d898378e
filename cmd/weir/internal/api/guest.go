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
func (a *API) Failed(err error) { a.failed(err) }

// ErrSlots is returned by Wait for a rule that holds slots.
var ErrSlots = errors.New("the rule holds slots, which a wait could not release; POST /v1/reserve waits for them")

// Errors of Reserve and Settle.
var (
	ErrToken = errors.New("the token is unknown: it was settled, or has expired, or is of another engine; nothing was changed")
	ErrCosts = errors.New("there is one cost for each request of the reservation")
)

// Reserve works like Wait for a reservation, which the token settles. It has none after a refusal.
func (a *API) Reserve(client context.Context, patience time.Duration, requests []weir.Request) (d weir.Decision, token string, err error) {
	if a.waits.stopped.Err() != nil {
		return d, "", ErrStopping
	}
	secret, err := a.secret(client)
	if err != nil {
		return d, "", err
	}
	d, hold, err := a.ask(client, patience, requests, (*asker).hold)
	if err != nil || hold == nil || !d.Allowed {
		return d, "", err
	}
	token, _ = a.handOver(secret, hold, requests)
	return d, token, nil
}

// Settle ends the reservation of a token with its true costs, or as it is without any. One cost is that of each request. may
// reports whether the caller may ask for a rule.
func (a *API) Settle(ctx context.Context, token string, may func(rule string) error, costs ...int64) error {
	ctx, cancel := a.withPatience(ctx)
	defer cancel()
	r, requests, err := a.reservationOf(ctx, token)
	if err != nil {
		return err
	}
	for _, q := range requests {
		if err := may(q.Rule.Name()); err != nil {
			return err
		}
	}
	return a.settleOnce(ctx, r, requests, costs)
}

// ask gets the requests for a client of another server.
func (a *API) ask(client context.Context, patience time.Duration, requests []weir.Request, by func(*asker, context.Context) (granted, error)) (weir.Decision, *weir.Reservation, error) {
	c := &asker{api: a, asks: requests, client: client, patience: min(patience, a.waits.longest), extend: func(time.Time) {}}
	got, why, err := c.get(func(ctx context.Context) (granted, error) { return by(c, ctx) })
	if why == reasonStop {
		err = ErrStopping
	}
	if err == nil && a.asked != nil {
		a.asked(requests, got.decision.Allowed)
	}
	return got.decision, got.hold, err
}

// Wait takes the requests as soon as the engine admits them, for a client of another server. The context ends when the client
// leaves. A refusal is no error. Wait keeps the bounds of /v1/wait, and is counted with it.
func (a *API) Wait(client context.Context, patience time.Duration, requests []weir.Request) (weir.Decision, error) {
	if a.force.Load().leases.shortest(requests) > 0 {
		return weir.Decision{}, ErrSlots
	}
	if a.waits.stopped.Err() != nil {
		return weir.Decision{}, ErrStopping
	}
	d, _, err := a.ask(client, patience, requests, (*asker).take)
	return d, err
}
