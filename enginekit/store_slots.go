package enginekit

import (
	"context"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
)

// renewEvery is how often slots are renewed, or a third of their lease if that is shorter.
const renewEvery = 10 * time.Second

// KeepSlots renews the leases of slots that were taken after since, until release is called. It closes lost when a slot has
// expired, and when no renewal succeeds in time.
func (e *StoreEngine) KeepSlots(since time.Time, slots weir.Call) (lost <-chan struct{}, release func()) {
	slots.Op = weir.OpTake
	gone, end := make(chan struct{}), make(chan struct{})
	if a, err := e.newCall(context.Background(), slots); err == nil {
		go e.renew(since, leaseOf(a), slots, gone, end)
	}
	return gone, sync.OnceFunc(func() { close(end) })
}

// leaseOf returns the shortest lease of slots.
func leaseOf(a *question) time.Duration {
	lease := weir.Never
	for i := range a.call.Parts {
		if c, ok := a.call.Parts[i].algorithm.(*algorithm.Concurrency); ok {
			lease = min(lease, time.Duration(c.Lease()))
		}
	}
	return lease
}

// renew renews slots until end is closed. It closes gone when they are lost.
func (e *StoreEngine) renew(since time.Time, lease time.Duration, slots weir.Call, gone, end chan struct{}) {
	every := min(renewEvery, lease/3)
	ends, next, refused := since.Add(lease), since.Add(every), false
	for {
		select {
		case <-end:
			return
		case <-time.After(time.Until(next)):
		}
		sent := time.Now()
		if refused || !sent.Before(ends) { // refused before: a release may have been on its way then
			close(gone)
			return
		}
		ctx, cancel := context.WithDeadline(context.Background(), ends)
		held, err := e.Renew(ctx, slots)
		cancel()
		switch retry := time.Now().Add(max(every/10, time.Millisecond)); {
		case err == nil && held:
			ends, next = sent.Add(lease), sent.Add(every)
		default:
			refused, next = err == nil, retry
			if next.After(ends) {
				next = ends
			}
		}
	}
}

// Renew has the leases of slots begin now, if all of them are still held.
func (e *StoreEngine) Renew(ctx context.Context, slots weir.Call) (held bool, err error) {
	slots.Op, slots.Taken = weir.OpTake, nil
	a, err := e.newCall(ctx, slots)
	if err != nil {
		return false, err
	}
	a.decide = func(now int64) weir.Decision {
		return a.call.change(func(parts []algorithm.Part) algorithm.Answer { return algorithm.Renew(parts, now) })
	}
	answer, err := e.answer(ctx, a, slots)
	return answer.Decision.Allowed, err
}
