package weir_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// TestKeyCost measures the memory of a gate per tenant and holds it to the bounds in docs/waiting.md: go test -v -run
// TestKeyCost .
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

// costOfWaiting returns the heap in bytes of a key that is not idle, and the heap added by a first and by a second
// waiting goroutine. Their stacks do not count.
func costOfWaiting(t *testing.T, limit weir.Limit) (busy, first, further int64) {
	const keys = 5000
	synctest.Test(t, func(t *testing.T) {
		// The runtime keeps the descriptors of ended goroutines. It allocates them before the count begins.
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

// costOfIdle returns the heap after 200,000 keys that were used once each, of which about a thousand are busy at any
// time. All of them would take 25 MB or more.
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
