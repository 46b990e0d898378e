package httplimit

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// visit is one request on its way to a decision. Later requests reuse it.
type visit struct {
	*limiter
	requests []weir.Request
	lease    uint64      // that holds the slots; 0 without slots
	rules    []*rule     // of each of the requests
	sets     []*policies // of each of the requests
	free     bool        // nothing was decided, so nothing was taken
	waited   bool        // in the queue
	delay    time.Duration
	acquired *pace.Acquired // what a request took that waited for slots
	charge   *charge        // what is settled later; nil if there is nothing
	buffer   []byte         // for header fields
}

func (l *limiter) visit() *visit {
	if v, ok := l.visits.Get().(*visit); ok {
		return v
	}
	return &visit{limiter: l}
}

// done puts the visit back. It drops the keys, so that they can be collected.
func (v *visit) done() {
	clear(v.requests[:cap(v.requests)])
	v.requests, v.rules, v.sets = v.requests[:0], v.rules[:0], v.sets[:0]
	v.lease, v.free, v.waited, v.delay, v.acquired, v.charge = 0, false, false, 0, nil, nil
	v.visits.Put(v)
}

// letGo puts back the visit of a request that is not passed on. Its slots return, and its other units stay spent.
func (v *visit) letGo(ctx context.Context) {
	c := v.charge
	v.done()
	if c != nil {
		c.slots.release(ctx)
	}
}

// addRequests adds the engine's requests of an HTTP request. It refuses an HTTP request without a key or plan, if the
// rule says so.
func (v *visit) addRequests(r *http.Request) *Refusal {
	for i := range v.limiter.rules {
		rule := &v.limiter.rules[i]
		set, err := v.setOf(rule, r)
		if err != nil && r.Context().Err() != nil {
			err = errLeft // the plan may have asked a store under the request's context
		}
		if err != nil {
			return v.undecided(r, err)
		}
		key := rule.Key(r)
		if key == "" && rule.Missing == MissingUnlimited {
			continue
		}
		if key == "" && rule.Missing == MissingRefused {
			if v.DryRun {
				continue
			}
			return missingKey(set.rule.Name())
		}
		q := set.rule.For(boundedKey(key), 1)
		if rule.Cost != nil {
			q.Cost = rule.Cost(r)
		}
		if set.slots != nil && v.lease == 0 {
			v.lease = weir.NewLease()
		}
		v.requests, v.rules, v.sets = append(v.requests, q), append(v.rules, rule), append(v.sets, set)
	}
	return nil
}

// setOf returns the policies of the rule, or of the plan, for a request.
func (v *visit) setOf(r *rule, request *http.Request) (*policies, error) {
	if r.fixed != nil {
		return r.fixed, nil
	}
	return v.plans.policiesOf(v.limiter, r.Plan(request))
}

// take makes the decision and sets its header fields.
func (v *visit) take(h http.Header, r *http.Request) *Refusal {
	d, err := v.decideOrWait(r.Context())
	if err != nil {
		v.releaseUnknown(r.Context(), err)
		return v.undecided(r, err)
	}
	if d.Allowed {
		v.charge = newCharge(v) // before functions of the program run, which may panic
	}
	if v.Observe != nil {
		v.Observe(r, d, nil)
	}
	if v.DryRun {
		return nil
	}
	v.delay = d.Delay
	p := v.binding(&d)
	if v.Headers != NoHeaders && (!d.Allowed || !v.RefusalsOnly) {
		v.writeFields(h, &d, p)
	}
	if d.Allowed {
		return nil
	}
	return tooMany(&d, p)
}

// decide makes the decision, within Timeout. The end of the client's context does not end it, because a client could
// otherwise make its request undecided.
func (v *visit) decide(ctx context.Context) (weir.Decision, error) {
	a, err := v.Engine.Do(ctx, weir.Call{Op: weir.OpTake, Requests: v.requests, Lease: v.lease, Within: v.Timeout})
	return a.Decision, err
}

// errLeft is the error of a request whose client has left before it was decided.
var errLeft = errors.New("httplimit: the client has left")

// undecided returns the refusal of an undecided request, or nil to admit it. It never admits a request that the client
// may have made undecidable: one that no engine could decide, or one whose client has left.
func (v *visit) undecided(r *http.Request, err error) *Refusal {
	v.free = true
	if err != errLeft {
		v.watch.failed(err)
		if v.Observe != nil {
			v.Observe(r, weir.Decision{}, err)
		}
	}
	if v.Undecided == AdmitUndecided && err != errLeft && !errors.Is(err, weir.ErrRequest) || v.DryRun {
		return nil
	}
	return notDecided(err)
}

// releaseUnknown releases slots that a failed call may have taken. The client does not wait for it, because the
// engine may hang. The queue releases the slots of a request that has waited, which has no identity here.
func (v *visit) releaseUnknown(ctx context.Context, err error) {
	if v.waited || !weir.MayHaveCounted(err) {
		return
	}
	lost := newSlots(v)
	if lost == nil {
		return
	}
	if engine, ok := weir.Find[weir.Holder](v.Engine); ok {
		engine.Drop(lost.call())
		return
	}
	background(func() { lost.release(ctx) })
}

// isCharged reports whether there is something to settle when the handler returns.
func (v *visit) isCharged() bool {
	for i := range v.requests {
		if r := v.rules[i]; r.After != nil || r.Settled || v.sets[i].slots != nil {
			return true
		}
	}
	return false
}

// binding returns the policy of a decision, or nil if its rule has no limit to describe.
func (v *visit) binding(d *weir.Decision) *policy {
	at := 0
	for i := range v.requests {
		if v.requests[i].Rule.Name() == d.Rule {
			at = i
			break
		}
	}
	if d.Allowed {
		return v.sets[at].tightest(d.Limit)
	}
	return v.sets[at].refusing(d, v.requests[at].Cost)
}

// hold waits for the delay of a decision. It reports whether the client is still connected.
func hold(ctx context.Context, delay time.Duration) bool {
	if delay <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
