package front

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Grant is what an admitted request has taken, until the request ends. A nil Grant holds nothing.
type Grant[R, A any] struct {
	rules    *Rules[R, A]
	failures *failures
	slots    reservation // nil without slots
	released sync.Once
	outlived atomic.Bool // the slots belong to a connection

	units   reservation // whose costs are settled
	charges []charge    // one for each of the units
	ended   bool        // with costs that can no longer be stated
	mu      sync.Mutex
}

// reservation is a *weir.Reservation or a *pace.Acquired.
type reservation interface {
	Settle(ctx context.Context, actual ...int64) error
	Done(ctx context.Context) error
}

// charge is the cost of a request under one rule.
type charge struct {
	at     int // the index of the rule
	name   string
	key    string
	taken  int64
	actual int64
	known  bool // that is the true cost
	stated bool // by Settle
}

// AsksAfter reports whether a rule has an After, which needs the answer.
func (g *Grant[R, A]) AsksAfter() bool {
	return slices.ContainsFunc(g.charges, func(c charge) bool { return g.rules.list[c.at].After != nil })
}

// HoldsSlots reports whether the request holds slots.
func (g *Grant[R, A]) HoldsSlots() bool { return g.slots != nil }

// Answered releases the slots when the handler has returned, and then asks each Rule.After for the true cost that Settle
// has not stated. If one panics, the others are asked nevertheless.
func (g *Grant[R, A]) Answered(ctx context.Context, r R, answer A) {
	if g != nil {
		g.release(ctx)
		g.askAfter(r, answer)
	}
}

func (g *Grant[R, A]) askAfter(r R, answer A) {
	for i := range g.charges {
		c := &g.charges[i]
		if after := g.rules.list[c.at].After; after != nil {
			defer func() { g.asked(c, func() int64 { return after(r, answer, c.taken) }) }()
		}
	}
}

func (g *Grant[R, A]) asked(c *charge, after func() int64) {
	g.mu.Lock()
	stated := c.stated
	g.mu.Unlock()
	if stated {
		return
	}
	cost := max(0, after())
	g.mu.Lock()
	defer g.mu.Unlock()
	c.actual, c.known = cost, true
}

// Outlive makes the slots last until release is called: for a connection that its request leaves behind.
func (g *Grant[R, A]) Outlive() (release func()) {
	g.outlived.Store(true)
	return func() { g.releaseNow(context.Background()) }
}

// End ends the request: it releases its slots, and gives back or counts the difference between its true costs and those
// taken. It continues after the end of ctx, for at most two seconds each.
func (g *Grant[R, A]) End(ctx context.Context) {
	if g != nil {
		g.end(ctx)
	}
}

func (g *Grant[R, A]) end(ctx context.Context) {
	g.release(ctx)
	g.mu.Lock()
	g.ended = true
	costs := make([]int64, len(g.charges))
	for i := range costs {
		costs[i] = g.charges[i].actual
	}
	g.mu.Unlock()
	if len(costs) > 0 {
		if settleAtOnce(ctx, g.failures, func(ctx context.Context) error { return g.units.Settle(ctx, costs...) }) {
			g.learn()
		}
	}
}

// learn tells estimates the true costs that were settled.
func (g *Grant[R, A]) learn() {
	for i := range g.charges {
		c := &g.charges[i]
		if e := g.rules.list[c.at].Estimate; e != nil && c.known {
			e.Learn(c.key, c.actual)
		}
	}
}

// Abandon ends a request that does not go ahead: its slots come back, and its other units stay spent.
func (g *Grant[R, A]) Abandon(ctx context.Context) {
	if g != nil {
		g.release(ctx)
	}
}

func (g *Grant[R, A]) release(ctx context.Context) {
	if g.slots != nil && !g.outlived.Load() {
		g.releaseNow(ctx)
	}
}

func (g *Grant[R, A]) releaseNow(ctx context.Context) {
	g.released.Do(func() { settleAtOnce(ctx, g.failures, g.slots.Done) })
}

// settleWithin bounds a settlement, which continues after its client has left.
const settleWithin = time.Second

// settleAtOnce settles a reservation, and reports whether that succeeded. After an error it tries once more, which a
// reservation counts at most once. Then the reservation repeats the rest on its own.
func settleAtOnce(ctx context.Context, failures *failures, send func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	err := send(ctx)
	if err != nil && ctx.Err() == nil {
		err = send(ctx)
	}
	if err != nil {
		failures.log(err)
	}
	return err == nil
}
