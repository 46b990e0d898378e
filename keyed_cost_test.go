package weir_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// TestKeyCost measures what a gate per tenant costs, and holds it to the bounds
// that docs/waiting.md promises: go test -v -run TestKeyCost .
func TestKeyCost(t *testing.T) {
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1},
		weir.RateGate{Rate: weir.PerSecond(1)},
	} {
		busy, waiting, further := costOfWaiting(t, limit)
		idle := costOfIdle(t, limit)
		t.Logf("%v: %d bytes for a busy key, %d with one waiting caller, %d for each further one; %d KiB after 200000 keys that are idle now",
			limit, busy, busy+waiting, further, idle>>10)
		if busy > 512 || busy+waiting > 1536 || further > 640 || idle > 2<<20 {
			t.Errorf("%v: more than 512, 1536 and 640 bytes, and 2048 KiB", limit)
		}
	}
}

// costOfWaiting is the heap in bytes for a key that is not idle, what is added
// when one goroutine waits for it, and when a second does. Their stacks are
// theirs, and not counted.
func costOfWaiting(t *testing.T, limit weir.Limit) (busy, first, further int64) {
	const keys = 5000
	synctest.Test(t, func(t *testing.T) {
		// The runtime keeps the descriptors of goroutines that have ended. Let it
		// have them before the count begins.
		for range 2 * keys {
			go time.Sleep(time.Nanosecond)
		}
		time.Sleep(time.Microsecond)
		k := mustKeyed[int](t, limit)
		ctx, cancel := context.WithCancel(t.Context())
		added := func(use func(key int)) int64 {
			before := heapInUse()
			for key := range keys {
				use(key)
			}
			synctest.Wait()
			return (heapInUse() - before) / keys
		}
		wait := func(key int) { go k.Wait(ctx, key) }
		busy = added(func(key int) { k.Allow(key) })
		first = added(wait)
		further = added(wait)
		cancel()
		runtime.KeepAlive(k)
	})
	return busy, first, further
}

// costOfIdle is the heap after 200,000 keys that were used once each, of which
// about a thousand are busy at any time. They would be 25 MB and more.
func costOfIdle(t *testing.T, limit weir.Limit) int64 {
	k := mustKeyed[int](t, limit)
	at := time.Unix(1700000000, 0)
	before := heapInUse()
	for key := range 200_000 {
		k.AllowAt(at.Add(time.Duration(key)*time.Millisecond), key, 1)
	}
	after := heapInUse()
	runtime.KeepAlive(k)
	return after - before
}
