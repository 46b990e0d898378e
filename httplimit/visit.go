package httplimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// visit is one request on its way to a decision. Later requests reuse it.
type visit struct {
	*limiter
	requests []weir.Request
	rules    []*rule     // of each of the requests
	sets     []*policies // of each of the requests
	delay    time.Duration
	acquired *pace.Acquired // what a request took that waited for slots
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
	v.delay, v.acquired = 0, nil
	v.visits.Put(v)
}

// addRequests adds the engine's requests of an HTTP request. It refuses an HTTP request without a key or plan, if the
// rule says so.
func (v *visit) addRequests(r *http.Request) *Refusal {
	lease := uint64(0)
	for i := range v.limiter.rules {
		rule := &v.limiter.rules[i]
		set, err := v.setOf(rule, r)
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
		if set.slots != nil {
			if lease == 0 {
				lease = rand.Uint64() | 1 // 0 is no identity
			}
			q.Lease = lease
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
	if v.Observe != nil {
		v.Observe(r, d, nil)
	}
	if v.DryRun {
		if !d.Allowed {
			v.requests = v.requests[:0]
		}
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

// decide makes the decision, within Timeout. An engine that accepts a duration needs no context, which would cost more
// than a decision in memory.
func (v *visit) decide(ctx context.Context) (weir.Decision, error) {
	if e, ok := v.Engine.(weir.WithinTaker); ok {
		return e.TakeWithin(v.Timeout, v.requests...)
	}
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	return v.Engine.Take(ctx, v.requests...)
}

// undecided returns the refusal of an undecided request, or nil to admit it. It never admits a request that no engine
// could decide, because the client may have made it so.
func (v *visit) undecided(r *http.Request, err error) *Refusal {
	v.requests = v.requests[:0] // nothing is held
	if r.Context().Err() == nil {
		v.watch.failed(err)
		if v.Observe != nil {
			v.Observe(r, weir.Decision{}, err)
		}
	}
	if v.Undecided == AdmitUndecided && !errors.Is(err, weir.ErrRequest) || v.DryRun {
		return nil
	}
	return notDecided(err)
}

// releaseUnknown releases slots that a failed call may have taken. The client does not wait for it, because the
// engine may hang.
func (v *visit) releaseUnknown(ctx context.Context, err error) {
	for i := range v.requests {
		if v.sets[i].slots == nil || !weir.MayHaveCounted(err) {
			continue
		}
		if engine, ok := v.Engine.(weir.Holder); ok {
			engine.Drop(newCharge(v).slots(1)...)
		} else {
			go newCharge(v).releaseSlots(ctx)
		}
		return
	}
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
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
