package httplimit

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// Settle states the true cost of a request under the named rule, such as the
// tokens that it used; 0 refunds it. The rule must be Settled. The middleware
// gives back or counts the difference when the handler returns; of several
// statements the last one holds. Settle reports whether the request is charged
// under such a rule.
func Settle(ctx context.Context, rule string, cost int64) bool {
	c, _ := ctx.Value(chargeKey{}).(*charge)
	for ; c != nil; c = c.outer {
		for i := range c.requests {
			if c.rules[i].Settled && c.requests[i].Rule.Name() == rule {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.stated[i] = max(cost, 0)
				return true
			}
		}
	}
	return false
}

// Answer describes the handler's answer to Rule.After.
type Answer struct {
	Status int
	Bytes  int64 // of the body, without those of a hijacked connection
	Cost   int64 // the units that were taken before
}

// Failures is a Rule.After that counts only answers with status 400 and above:
// a limit on failed attempts. The units of the other requests come back when
// their handlers return, so requests in flight count too.
func Failures(_ *http.Request, a Answer) int64 {
	if a.Status < http.StatusBadRequest {
		return 0
	}
	return a.Cost
}

type chargeKey struct{}

// charge holds the units that a request took, and settles them when its handler has returned.
type charge struct {
	*limiter
	requests []weir.Request
	rules    []*rule
	sets     []*policies
	stated   []int64 // by the handler; -1 if it has not
	outer    *charge // the charge of an outer middleware
	answer   *recorder
	returned bool
	slots    *slots // nil if there are none
	mu       sync.Mutex
}

// newCharge returns the charge of an admitted request, or nil if nothing is settled when its handler returns.
func newCharge(v *visit) *charge {
	if !v.isCharged() {
		return nil
	}
	c := &charge{
		limiter:  v.limiter,
		requests: append([]weir.Request(nil), v.requests...),
		rules:    append([]*rule(nil), v.rules...),
		sets:     append([]*policies(nil), v.sets...),
		stated:   make([]int64, len(v.requests)),
		slots:    newSlots(v),
	}
	for i := range c.stated {
		c.stated[i] = -1
	}
	c.slots.hold(time.Now()) // a little late, but nothing here waits for the end of a lease
	return c
}

// attach returns the handler's arguments: a writer that records its answer, and a
// request in whose context Settle finds the charge.
func (c *charge) attach(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request) {
	settled, recorded := false, false
	for i, rule := range c.rules {
		settled = settled || rule.Settled
		recorded = recorded || rule.After != nil || c.sets[i].slots != nil
	}
	if recorded {
		c.answer = &recorder{ResponseWriter: w, slots: c.slots}
		w = c.answer.wrapped()
	}
	if settled {
		c.outer, _ = r.Context().Value(chargeKey{}).(*charge)
		r = r.WithContext(context.WithValue(r.Context(), chargeKey{}, c))
	}
	return w, r
}

// finish settles the charge. A hijacked connection keeps its slots until it is closed. If an After panics, the other
// rules are settled nevertheless.
func (c *charge) finish(r *http.Request) {
	var more, back []weir.Request
	defer func() {
		c.change(r.Context(), weir.OpReturn, back)
		c.change(r.Context(), weir.OpRecord, more)
	}()
	for i, q := range slices.Backward(c.requests) {
		defer func() {
			q.Cost = c.actual(i, r) - q.Cost
			switch q.Rule = c.sets[i].rates; {
			case q.Rule == nil:
			case q.Cost > 0:
				more = append(more, q)
			case q.Cost < 0:
				q.Cost *= -1
				back = append(back, q)
			}
		}()
	}
	if c.answer == nil || !c.answer.isHijacked() {
		c.slots.release(r.Context())
	}
}

// actual returns the true cost under the i-th rule.
func (c *charge) actual(i int, r *http.Request) int64 {
	c.mu.Lock()
	stated := c.stated[i]
	c.mu.Unlock()
	cost := c.requests[i].Cost
	switch after := c.rules[i].After; {
	case stated >= 0:
		return stated
	case after != nil && c.returned:
		return max(0, after(r, Answer{Status: c.answer.statusCode(), Bytes: c.answer.bytes, Cost: cost}))
	}
	return cost
}

// change sends differences to the engine.
func (c *charge) change(ctx context.Context, op weir.Op, changes []weir.Request) {
	if len(changes) == 0 {
		return
	}
	err := settle(ctx, false, func(ctx context.Context) error {
		_, err := c.Engine.Do(ctx, weir.Call{Op: op, Requests: changes})
		return err
	})
	if err != nil {
		c.watch.failed(err)
	}
}
