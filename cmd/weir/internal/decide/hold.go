package decide

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// A hold is units that are taken for a request whose true cost is known after it. The caller that commits its id counts that cost. Units
// that nobody commits come back at the end of the hold's life, by a timer of this daemon.
//
// Two marks in the engine have that happen once, whichever daemons are asked: see the constants committed and over. A
// commit counts the true cost before it gives the held units back, so that no other caller gets them in between. A
// window that has ended since the hold gets nothing back, and the cost counts whole in the current one.

// ErrHolds is the error of a Hold beyond what a daemon remembers.
var ErrHolds = errors.New("this daemon has too many open holds, and nothing was held; commit them, ask for a shorter ttl, or start another daemon on the engine")

// HoldOptions bound a hold.
type HoldOptions struct {
	Life  time.Duration // after which its units come back
	Share int64         // the percentage of each limit that it takes at most
}

// Hold takes requests, each up to its share, but at least a unit. The id is of the domain and the requests. There is
// none after a refusal.
func (d *Desk) Hold(ctx context.Context, domain string, requests []weir.Request, o HoldOptions) (id string, err error) {
	secret, err := d.options.Secret(ctx)
	if err != nil {
		return "", err
	}
	asks, h := d.shares(requests, o.Share), newHold(domain, requests, o.Life)
	if len(asks) == 0 {
		return h.id(secret), nil
	}
	size := d.holds.room.claim(holdBytes + sizeOf(asks))
	if size == 0 {
		d.failures.Warn(d.options.Log, "refused a hold: this daemon has too many open ones", "bytes", mostHeld)
		return "", ErrHolds
	}
	got, err := d.get(Patient{Client: ctx}, asks, (*attempt).hold)
	if err == nil {
		d.Recorded(asks, got.made.Allowed)
		d.replaced(asks, got.made)
	}
	if err != nil || !got.made.Allowed || got.hold == nil {
		d.holds.room.leave(size)
		return "", err
	}
	take, paid := weir.Kit.HandOver(got.hold), got.made.On
	h.Lease, h.Taken = take.Lease, take.Taken
	for i := range paid {
		h.Costs = append(h.Costs, paid[i].Cost)
	}
	h.Links = linksOf(asks, paid)
	d.holds.add(h.Lease, size, o.Life, func() { d.comeBack(h, paid) })
	return h.id(secret), nil
}

// HoldNone returns the id of a hold of nothing if there is room for the requests, and otherwise none.
func (d *Desk) HoldNone(ctx context.Context, domain string, requests []weir.Request, life time.Duration) (id string, err error) {
	secret, err := d.options.Secret(ctx)
	if err != nil {
		return "", err
	}
	if len(requests) > 0 {
		made, err := d.Do(ctx, weir.Call{Op: weir.OpPeek, Requests: requests})
		if err != nil || !made.Allowed {
			return "", err
		}
	}
	return newHold(domain, requests, life).id(secret), nil
}

// shares returns the requests with the units that a hold takes.
func (d *Desk) shares(requests []weir.Request, percent int64) []weir.Request {
	requests = slices.Clone(requests)
	for i := range requests {
		q := &requests[i]
		for _, limit := range d.Overridden(requests[i : i+1])[0].Rule.Limits() {
			share := weir.Describe(limit).Capacity
			share = share/100*percent + share%100*percent/100
			q.Cost = min(q.Cost, max(share, 1))
		}
		if q.Otherwise != nil {
			q.Otherwise = &d.shares([]weir.Request{*q.Otherwise}, percent)[0]
		}
	}
	return requests
}

// Commit counts the requests, whether they fit or not, and ends their hold. It reports whether the hold still stood. The requests
// of a hold that was committed before are not counted again. Without a hold of the domain and of these requests, or while the engine
// is away, Commit is Report.
func (d *Desk) Commit(ctx context.Context, domain, id string, requests []weir.Request) (stood bool, err error) {
	secret, err := d.options.Secret(ctx)
	if err != nil {
		return false, err
	}
	h := holdIn(secret, id)
	if h == nil || !slices.Equal(h.Of, hashOf(domain, requests)) {
		return false, d.Report(ctx, requests)
	}
	mark, err := h.mark(committed)
	if err != nil {
		return false, err
	}
	ctx = context.WithoutCancel(ctx) // the work was done, whether the client waits for the answer or not
	err = d.once(ctx, mark, 0, false, func() error {
		stood, err = d.commit(ctx, h, requests)
		return err
	})
	switch _, unmarked := errors.AsType[uncounted](err); {
	case err == ErrToken:
		return false, nil
	case unmarked:
		return false, d.Report(ctx, requests) // the engine is away, so the outcome of the hold is unknown
	}
	return stood, err
}

// commit counts the requests, by the rules that paid for the hold, and gives back what is held of them.
func (d *Desk) commit(ctx context.Context, h *hold, requests []weir.Request) (stood bool, err error) {
	requests = h.paid(requests)
	count := func() error { return d.count(ctx, requests) }
	if h.Costs == nil {
		return h.after() < 0, count()
	}
	first, then := count, func() error {
		stood = d.giveBack(ctx, h, h.held(requests))
		return nil
	}
	if inSteps(requests) {
		first, then = then, first
	}
	switch err = d.endHold(ctx, h, first); {
	case err == ErrToken: // the units came back
		return false, count()
	case err != nil:
		return false, err
	}
	d.holds.forget(h.Lease)
	if err = then(); err != nil {
		return false, err
	}
	return stood, nil
}

// inSteps reports whether a limit can be booked and gets its units back in steps. One in debt gives nothing back, because the debt
// looks like a booking, so there the units come back before the cost counts.
func inSteps(requests []weir.Request) bool {
	return slices.ContainsFunc(requests, func(q weir.Request) bool {
		return slices.ContainsFunc(q.Rule.Limits(), func(l weir.Limit) bool {
			d := weir.Describe(l)
			return d.Bookable && d.Refill != weir.RefillRate
		})
	})
}

// Report counts requests, whether they fit or not.
func (d *Desk) Report(ctx context.Context, requests []weir.Request) error {
	return d.count(context.WithoutCancel(ctx), requests)
}

// count records requests without their slots, as costs told after the work.
func (d *Desk) count(ctx context.Context, requests []weir.Request) error {
	call := weir.Call{Op: weir.OpRecord}
	for _, q := range Alone(requests) {
		if q.Rule = weir.Kit.Spent(q.Rule); q.Rule != nil && q.Cost > 0 {
			call.Requests = append(call.Requests, q)
		}
	}
	if len(call.Requests) == 0 {
		return nil
	}
	made, err := d.tell(ctx, d.recordOf(call, true))
	if err == nil && made.Unrecorded {
		err = &weir.RequestError{Op: "record", Rule: made.Rule, Field: "cost", Reason: fmt.Sprintf("for key %s is not recorded, because the limit has too many entries above it", Quote(made.Key))}
	}
	return err
}
