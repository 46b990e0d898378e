package front

import (
	"slices"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// Outcome is the outcome of a request.
type Outcome uint8

const (
	Free       Outcome = iota // it goes ahead: no limit applies, the engine is away and the policy is layer.Allow, or a dry run
	Admitted                  // it goes ahead: the limits admit it
	Limited                   // a limit refuses it
	KeyMissing                // it has no key, and a rule with MissingRefused needs one
	NotDecided                // the engine failed
	ClientLeft                // its client has left; nobody hears the answer
)

// Passes reports whether the request goes ahead.
func (o Outcome) Passes() bool { return o <= Admitted }

// Ask is one request on its way to a decision, and then its answer. Done ends its use.
type Ask[R, A any] struct {
	Requests []weir.Request // to the engine
	Sets     []*Set         // the rule of each of the requests
	At       []int          // the index in Options.Rules of each
	Lease    uint64         // that holds the slots; 0 without slots

	Outcome  Outcome
	Decision weir.Decision
	Missing  *Set         // the rule that needs a key, if the Outcome is KeyMissing
	Err      error        // why the engine did not decide, or nil
	Grant    *Grant[R, A] // what is settled when the request ends; nil if nothing is
	settles  bool         // something when the request ends
	pool     *sync.Pool
}

// Decided reports whether the limits have decided: the Outcome is Admitted or Limited.
func (a *Ask[R, A]) Decided() bool { return a.Outcome == Admitted || a.Outcome == Limited }

// Binding returns the index of the request that the decision names.
func (a *Ask[R, A]) Binding() int { return enginekit.Binding(&a.Decision, a.Requests) }

// HeldUp reports whether a refusal waits for slots, which come back when their holders end, at an unknown time.
func (a *Ask[R, A]) HeldUp() bool {
	limits, refuses := a.Requests[a.Binding()].Rule.Limits(), int(a.Decision.RefusedBy)
	return refuses < len(limits) && weir.Describe(limits[refuses]).Held // an engine of another author may err
}

// delays reports whether a request is of a leaky bucket, which cannot be reserved.
func (a *Ask[R, A]) delays() bool {
	return slices.ContainsFunc(a.Requests, func(q weir.Request) bool { return q.Rule.Delays() })
}

// Done lets a later request use the Ask. It drops the keys, so that they can be collected. The Grant stays.
func (a *Ask[R, A]) Done() {
	clear(a.Requests)
	a.Requests, a.Sets, a.At, a.Lease, a.settles = a.Requests[:0], a.Sets[:0], a.At[:0], 0, false
	a.Decision, a.Missing, a.Err, a.Grant = weir.Decision{}, nil, nil, nil
	a.pool.Put(a)
}

// For returns what a request of a client asks its engine: with Missing, if a rule needs a key that the request does not
// have. An error is that of a plan.
func (rs *Rules[R, A]) For(r R, part Part) (*Ask[R, A], error) {
	a := rs.newAsk()
	err := rs.fill(a, r, part, false)
	if err == nil && a.Missing != nil {
		a.Outcome = KeyMissing
	}
	return a, err
}

func (rs *Rules[R, A]) newAsk() *Ask[R, A] {
	a, _ := rs.asks.Get().(*Ask[R, A])
	if a == nil {
		a = &Ask[R, A]{pool: &rs.asks}
	}
	return a
}

// cost returns the units that a request of a key takes.
func (rule *Rule[R, A]) cost(r R, key string) int64 {
	own, cost := int64(0), int64(1)
	if rule.Cost != nil {
		cost = rule.Cost(r)
		own = cost
	}
	if rule.Estimate != nil && own >= 0 {
		cost = rule.Estimate.Of(key, own)
	}
	return cost
}

// fill adds what a request asks the engine. It stops at a rule that needs a key, unless that is to be skipped.
func (rs *Rules[R, A]) fill(a *Ask[R, A], r R, part Part, skip bool) error {
	for i := range rs.list {
		rule := &rs.list[i]
		set, err := rs.setOf(i, r)
		if err != nil {
			return err
		}
		limits := set.part(part)
		if limits == nil {
			continue
		}
		key := rule.Key(r)
		if key == "" && rule.Missing != MissingShares {
			if rule.Missing == MissingUnlimited || skip {
				continue
			}
			a.Missing = set
			return nil
		}
		q := limits.For(BoundedKey(key), 1)
		q.Cost = rule.cost(r, q.Key)
		if set.slots != nil && part != Rates && a.Lease == 0 {
			a.Lease = weir.Kit.NewLease()
		}
		a.settles = a.settles || rule.After != nil || rule.Settled
		a.Requests, a.Sets, a.At = append(a.Requests, q), append(a.Sets, set), append(a.At, i)
	}
	return nil
}
