package decide

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/cmd/weir/internal/seal"
	"github.com/weirflow/weir/enginekit"
)

// A token is a reservation in text: its requests, the lease that holds its slots, when its units were taken, and its end, under a seal that only daemons
// with the same secret can make. A daemon keeps nothing of it. So every daemon on the engine honours the tokens of the
// others, and a restart ends none.
//
// The engine knows what a token cannot say: whether its slots are still held (enginekit.Renewer), and whether it was
// settled (once.go).

// tokenLife is the life of a token without slots. A token with slots lives as long as their lease.
const tokenLife = time.Minute

// reservation is the content of a token.
type reservation struct {
	Lease uint64        `json:"n"` // random; also names the reservation
	Ends  int64         `json:"e"` // Unix milliseconds
	Life  time.Duration `json:"d"` // that a renewal gives it
	Asks  []reserved    `json:"q"`
	Taken []int64       `json:"t,omitempty"` // weir.Call.Taken
}

// reserved is a request of a reservation.
type reserved struct {
	Rule   string    `json:"r"`
	Limits string    `json:"l"` // of the rule
	Key    []byte    `json:"k"`
	Cost   int64     `json:"c"`
	For    *askedFor `json:"f,omitempty"` // nil if the request itself was asked for
}

// askedFor is the rule and the key that were asked for, where another rule paid. A caller that may ask for these may settle.
type askedFor struct {
	Rule string `json:"r"`
	Key  []byte `json:"k"`
}

// newReservation describes what paid for requests, taken just now with a lease.
func newReservation(asked, paid []weir.Request, lease uint64) *reservation {
	leased := Lease(paid)
	r := &reservation{Lease: lease, Life: leased}
	if leased == 0 {
		r.Life = tokenLife
	}
	if lease == 0 {
		r.Lease = weir.Kit.NewLease()
	}
	for i, q := range paid {
		var limits []string
		for _, limit := range q.Rule.Limits() {
			limits = append(limits, fmt.Sprint(limit))
		}
		one := reserved{Rule: q.Rule.Name(), Limits: strings.Join(limits, " and "), Key: []byte(q.Key), Cost: q.Cost}
		if !sameKey(&asked[i], &q) {
			one.For = &askedFor{asked[i].Rule.Name(), []byte(asked[i].Key)}
		}
		r.Asks = append(r.Asks, one)
	}
	r.begin(time.Now())
	return r
}

// begin gives the reservation its life from an instant on.
func (r *reservation) begin(at time.Time) { r.Ends = at.Add(r.Life).UnixMilli() }

// token returns the token of a reservation.
func (r *reservation) token(secret []byte) string { return seal.Of(secret, "", r) }

// reservationIn returns the reservation of a token that has not ended, or nil.
func reservationIn(secret []byte, token string) *reservation {
	r := &reservation{}
	if !seal.Open(secret, "", token, r) || time.Now().UnixMilli() >= r.Ends {
		return nil
	}
	return r
}

// requestsOf returns the requests of a reservation. A rule that is not in force any more is made of its limits.
func (f *InForce) requestsOf(r *reservation) ([]weir.Request, error) {
	requests := make([]weir.Request, len(r.Asks))
	for i, asked := range r.Asks {
		rule := f.ruleOf(asked)
		if rule == nil {
			limits, err := weir.ParseLimits(asked.Limits)
			if err != nil {
				return nil, err
			}
			if rule, err = weir.NewRule(asked.Rule, limits...); err != nil {
				return nil, err
			}
		}
		requests[i] = rule.For(string(asked.Key), asked.Cost)
	}
	return requests, nil
}

// ruleOf returns the rule in force of a reserved request, or nil. A reservation made while its rule was a shadow has
// taken nothing of the rule, and the units that a rule had taken come back to it.
func (f *InForce) ruleOf(asked reserved) *weir.Rule {
	rule := f.known[asked.Rule]
	switch {
	case rule == nil || asked.Limits == unlimited && rules.InPlace(rule) == nil:
		return nil
	case asked.Limits == unlimited:
		return rule
	}
	return rules.Own(rule)
}

// unlimited are the limits of the stand-in for a shadow.
const unlimited = "unlimited"

// mark returns the request for the mark of a settlement.
func (r *reservation) mark() ([]weir.Request, error) { return markOf(r.Lease, "", r.Life+settledFor) }

// reservationOf returns the reservation of a token, for a caller that may ask for its rules.
func (d *Desk) reservationOf(ctx context.Context, who *auth.Identity, token string) (*reservation, []weir.Request, error) {
	secret, err := d.options.Secret(ctx)
	if err != nil {
		return nil, nil, uncounted{err}
	}
	r := reservationIn(secret, token)
	if r == nil {
		return nil, nil, ErrToken
	}
	requests, err := d.force.Load().requestsOf(r)
	if err != nil {
		return nil, nil, err
	}
	for _, one := range r.Asks {
		asked := askedFor{one.Rule, one.Key}
		if one.For != nil {
			asked = *one.For
		}
		if denied := mayAsk(who, auth.Take, asked.Rule, string(asked.Key)); denied != nil {
			return nil, nil, denied
		}
	}
	return r, requests, nil
}

// handOver leaves a reservation to its token. It returns the life of the token, too.
func (d *Desk) handOver(secret []byte, got granted) (token string, life time.Duration) {
	take := weir.Kit.HandOver(got.hold)
	r := newReservation(got.asks, got.made.On, take.Lease)
	r.Taken = take.Taken
	return r.token(secret), r.Life
}

// settleOnce settles a reservation, or returns ErrToken if that has happened. A client may try again what has failed if it was not
// counted, and is not repeated here.
func (d *Desk) settleOnce(ctx context.Context, r *reservation, requests []weir.Request, costs []int64) error {
	mark, err := r.mark()
	if err != nil {
		return err
	}
	costs, beyond := d.beyond(requests, costs)
	hold := weir.Kit.Granted(d.engine, time.Now(), weir.Decision{Allowed: true}, nil, weir.Call{Requests: requests, Lease: r.Lease, Taken: r.Taken})
	settle := func() error { return hold.Done(ctx) }
	if len(costs) > 0 {
		settle = func() error { return hold.Settle(ctx, costs...) }
	}
	if onlySlots(requests) {
		return d.once(ctx, mark, r.Lease, true, settle)
	}
	var failed error
	err = d.once(ctx, mark, r.Lease, false, func() error {
		err := settle()
		if err != nil && (weir.Unavailable(err) || bothWays(requests, costs)) {
			failed, err = stays{err}, nil // so the mark stays
		}
		if err == nil {
			failed = cmp.Or(failed, d.tellBeyond(ctx, beyond))
		}
		return err
	})
	if _, unmarked := errors.AsType[uncounted](err); unmarked && onlyBeyond(requests, costs, beyond) {
		err = d.tellBeyond(ctx, beyond) // nothing else is left to settle, and the engine counts this when it is back
	}
	if err == nil {
		d.settledBeside(requests, costs)
	}
	for i, q := range requests {
		if err == nil && len(costs) > 0 && q.Rule.ChargesAfter() {
			d.tellTold(q.Rule.Name(), costs[min(i, len(costs)-1)], ToldCounted)
		}
	}
	return cmp.Or(err, failed)
}

// settledBeside has shadows decide on the true costs of a reservation, once these are known. Shadows of slots decide on none.
func (d *Desk) settledBeside(requests []weir.Request, costs []int64) {
	for i, q := range requests {
		shadow := rules.InPlace(q.Rule)
		if shadow == nil || weir.Kit.Held(shadow) != nil {
			continue
		}
		if len(costs) > 0 {
			q.Cost = costs[min(i, len(costs)-1)]
		}
		if q.Cost > 0 {
			d.tryBeside(nil, weir.OpTake, []weir.Request{shadow.For(q.Key, q.Cost)}, weir.Decision{Allowed: true})
		}
	}
}

// beyond divides the true costs of a settlement: into what the reservation itself settles, and the costs told after the work that
// go beyond what was reserved.
func (d *Desk) beyond(requests []weir.Request, costs []int64) (settles []int64, beyond []weir.Request) {
	if len(costs) == 0 || !slices.ContainsFunc(requests, func(q weir.Request) bool { return q.Rule.ChargesAfter() }) {
		return costs, nil
	}
	for i, q := range requests {
		cost := costs[min(i, len(costs)-1)]
		if more := cost - q.Cost; more > 0 && q.Rule.ChargesAfter() {
			reserved := q.Cost
			q.Cost = cost
			q = d.atMost(q, max(d.mostOf(q), reserved))
			q.Cost, cost = q.Cost-reserved, reserved
			beyond = append(beyond, q)
		}
		settles = append(settles, cost)
	}
	return settles, beyond
}

// tellBeyond counts the costs beyond a reservation.
func (d *Desk) tellBeyond(ctx context.Context, beyond []weir.Request) error {
	if len(beyond) == 0 {
		return nil
	}
	made, err := d.tell(ctx, d.recordOf(weir.Call{Op: weir.OpRecord, Requests: beyond}, false))
	switch {
	case err != nil:
		return stays{err}
	case made.Unrecorded:
		return stays{&weir.RequestError{Op: "settle", Rule: made.Rule, Field: "cost", Reason: fmt.Sprintf("for key %s beyond the reserved one is not recorded, because the limit has too many entries above it", Quote(made.Key))}}
	}
	return nil
}

// onlyBeyond reports whether a settlement only has costs beyond the reservation to count.
func onlyBeyond(requests []weir.Request, settles []int64, beyond []weir.Request) bool {
	return len(beyond) > 0 && !slices.ContainsFunc(requests, func(q weir.Request) bool { return weir.Kit.Held(q.Rule) != nil }) &&
		slices.EqualFunc(requests, settles, func(q weir.Request, cost int64) bool { return q.Cost == cost })
}

// stays is the error of a settlement that nobody may try again: the reservation does so by itself while the engine is away, and
// some units may have come back before others could not be recorded.
type stays struct{ error }

func (e stays) Unwrap() error          { return e.error }
func (stays) WasCounted() weir.Counted { return weir.CountedUnknown }

// bothWays reports whether a settlement gives units of one request back, and records more of another.
func bothWays(requests []weir.Request, costs []int64) bool {
	var less, more bool
	for i := range requests {
		if len(costs) > 0 {
			cost := costs[min(i, len(costs)-1)]
			less, more = less || cost < requests[i].Cost, more || cost > requests[i].Cost
		}
	}
	return less && more
}

// onlySlots reports whether the requests hold nothing but slots, whose release can be repeated.
func onlySlots(requests []weir.Request) bool {
	return !slices.ContainsFunc(requests, func(q weir.Request) bool { return weir.Kit.Spent(q.Rule) != nil })
}

// Errors of Settle and Renew.
var (
	ErrToken = errors.New("the token is unknown: it was settled, or has expired, or is of another engine; nothing was changed")
	// ErrCrowded is the error where the memory engine has no room for the mark of a settlement.
	ErrCrowded = errors.New("there is no room to remember settlements, and nothing was changed; ask again in two minutes, or give weir serve more --max-keys")
	ErrLost    = errors.New("the slots of token were lost: they were reset, or their lease has ended; stop the work")
)

// CostsError is the error of a settlement with another number of costs than the reservation has requests.
type CostsError struct{ Costs, Requests int }

func (e *CostsError) Error() string { return "there is one cost for each request of the reservation" }

// Settle ends the reservation of a token with its true costs, or as it is without any. One cost is that of each request, unless
// each says that there is one for each.
func (d *Desk) Settle(ctx context.Context, who *auth.Identity, token string, each bool, costs ...int64) error {
	ctx = context.WithoutCancel(ctx) // the work was done, whether the client waits for the answer or not
	r, requests, err := d.reservationOf(ctx, who, token)
	if err != nil {
		return err
	}
	if (each || len(costs) > 1) && len(costs) != len(requests) {
		return &CostsError{len(costs), len(requests)}
	}
	err = d.settleOnce(ctx, r, requests, costs)
	if err == nil {
		d.force.Load().learn(requests, costs)
	}
	return err
}

// Renew gives the reservation of a token its life again, in a new token.
func (d *Desk) Renew(ctx context.Context, who *auth.Identity, token string) (renewed string, life time.Duration, err error) {
	r, requests, err := d.reservationOf(ctx, who, token)
	if err != nil {
		return "", 0, err
	}
	began := time.Now()
	mark, err := r.mark()
	if err != nil {
		return "", 0, err
	}
	slots := slotsOf(requests)
	err = d.unsettled(ctx, &weir.Call{Op: weir.OpPeek, Requests: mark}, r.Lease)
	if err != nil && (err != ErrCrowded || len(slots) == 0) { // a settlement releases the slots, so they tell, too
		return "", 0, err
	}
	if len(slots) > 0 {
		renewer, ok := weir.Find[enginekit.Renewer](d.engine)
		if !ok {
			return "", 0, weir.Kit.Unsupported(weir.OpRecord, "renews no slots on this engine")
		}
		ctx, cancel := d.within(ctx)
		defer cancel()
		held, err := renewer.Renew(ctx, weir.Call{Requests: slots, Lease: r.Lease})
		if err != nil || !held {
			return "", 0, cmp.Or(err, ErrLost)
		}
	}
	r.begin(began)
	secret, err := d.options.Secret(ctx)
	return r.token(secret), r.Life, err
}

// slotsOf returns the requests for slots alone.
func slotsOf(requests []weir.Request) (slots []weir.Request) {
	for _, q := range requests {
		if alone := weir.Kit.Held(q.Rule); alone != nil && q.Cost > 0 {
			q.Rule = alone
			slots = append(slots, q)
		}
	}
	return slots
}
