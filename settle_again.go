package weir

import (
	"context"
	"slices"
	"time"

	"github.com/weirflow/weir/internal/repeat"
)

// The bounds of repeating failed settlements, and of releases whose take had no answer.
const (
	againAfter   = 50 * time.Millisecond // doubles with each try
	dropAfter    = 200 * time.Millisecond
	mostAgain    = 5 * time.Second
	overtaken    = 5 * time.Second // a take may come this long after its release
	againForUnit = time.Minute
	defaultLease = 30 * time.Second // the lease of a Concurrency without one, on an engine whose slots expire
)

// settlements repeats the settlements of the program. Without room for one, its slots end with their lease.
var settlements = repeat.New(repeat.Options{Most: 1 << 16, Pause: againAfter, LongestPause: mostAgain})

// again repeats a settlement that is incomplete because the engine could not be reached, until it succeeds, a caller
// settles, or it no longer matters: unrenewed slots end with their lease. So a caller that ignores the error of Done
// holds up others only during the outage.
func (h *reserved) again(s settlement) {
	if h.repeats.Swap(true) {
		return
	}
	settlements.Try(againAfter, endOf(h.slots()), repeat.Blocking(settleWithin, func(ctx context.Context) bool {
		_, err := h.settle(ctx, s)
		return err == nil || !Unavailable(err)
	}), func(repeat.Outcome) { h.repeats.Store(false) })
}

// Drop releases the slots of a take that failed and may have been counted, by its Lease. The engine may carry out the take
// after the release, and may be away, so Drop repeats the release for some seconds, and until it succeeds or the lease has passed.
// It waits for the first one, at most a second.
func (EngineKit) Drop(e Engine, take Call) {
	slots := Call{Op: OpReturn, Requests: slices.DeleteFunc(slotsOf(Kit.Links(take.Requests)), func(q Request) bool { return q.Rule == nil || q.Cost <= 0 }), Lease: take.Lease}
	if len(slots.Requests) == 0 || slots.Lease == 0 {
		return
	}
	late := time.Now().Add(overtaken)
	release := repeat.Blocking(settleWithin, func(ctx context.Context) (done bool) {
		_, err := e.Do(ctx, slots)
		return err == nil && time.Now().After(late) || err != nil && !Unavailable(err)
	})
	release(func(done bool) {
		if !done {
			settlements.Try(dropAfter, endOf(slots.Requests).Add(overtaken), release, nil)
		}
	})
}

// endOf returns when slots that nobody renews have ended.
func endOf(slots []Request) time.Time {
	lasts := againForUnit
	for _, q := range slots {
		for _, l := range q.Rule.limits {
			if c, ok := l.(Concurrency); ok {
				lasts = max(lasts, c.Lease, defaultLease)
			}
		}
	}
	return time.Now().Add(lasts)
}
