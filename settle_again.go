package weir

import (
	"context"
	"time"
)

// How a settlement that failed is repeated.
const (
	againAfter   = 50 * time.Millisecond // doubles with each try
	mostAgain    = 5 * time.Second
	againForUnit = time.Minute
	defaultLease = 30 * time.Second // of a Concurrency without a lease, on an engine whose slots expire
)

// again repeats a settlement of which something is left because the engine could not be reached, until it succeeds, its caller
// or another one settles, or nothing of it matters any more: slots that nobody renews end with their lease. So a caller that
// ignores the error of Done holds up nobody for longer than the outage.
func (h *holding) again(s settlement) {
	if h.repeats.Swap(true) {
		return
	}
	until := time.Now().Add(againForUnit)
	for _, q := range h.slots() {
		for _, l := range q.Rule.limits {
			if c, ok := l.(Concurrency); ok {
				until = later(until, time.Now().Add(max(c.Lease, defaultLease)))
			}
		}
	}
	pause := againAfter
	var try func()
	try = func() {
		ctx, cancel := context.WithTimeout(context.Background(), settleWithin)
		defer cancel()
		err := h.repeat(ctx, s)
		if pause = min(2*pause, mostAgain); err == nil || !Unavailable(err) || time.Now().Add(pause).After(until) {
			h.repeats.Store(false)
			return
		}
		time.AfterFunc(pause, try)
	}
	time.AfterFunc(pause, try)
}

// repeat settles once more. A panic of the engine ends the repetitions.
func (h *holding) repeat(ctx context.Context, s settlement) (err error) {
	defer func() { _ = recover() }()
	_, err = h.settle(ctx, s)
	return err
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
