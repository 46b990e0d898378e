package weir_test

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

func mustKeyed[K comparable](t testing.TB, limit weir.Limit, options ...weir.Options) *weir.Keyed[K] {
	t.Helper()
	k, err := weir.NewKeyedWith[K](limit, append(options, weir.Options{})[0])
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeysAreLimitedApart(t *testing.T) {
	k := mustKeyed[netip.Addr](t, weir.FixedWindow{Rate: weir.PerDay(2)})
	at := time.Unix(1700000000, 0)
	for i := range 10 {
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		for n := range 3 {
			if got := k.AllowAt(at, addr, 1); got != (n < 2) {
				t.Errorf("%v, attempt %d: %v", addr, n, got)
			}
		}
	}
}

func TestKeyedDecisionAllocatesNothingForKnownKeys(t *testing.T) {
	type tenant struct {
		org  uint64
		plan [2]byte
	}
	k := mustKeyed[tenant](t, weir.TokenBucket{Rate: weir.PerSecond(1000)})
	key := tenant{org: 7, plan: [2]byte{1}}
	k.Allow(key)
	if allocs := testing.AllocsPerRun(1000, func() { k.Allow(key) }); allocs != 0 {
		t.Errorf("Allow allocates %v times", allocs)
	}
	if allocs := testing.AllocsPerRun(1000, func() { k.Take(key, 1) }); allocs != 0 {
		t.Errorf("Take allocates %v times", allocs)
	}
}

func TestIdleKeysAreEvicted(t *testing.T) {
	k := mustKeyed[int](t, weir.TokenBucket{Rate: weir.PerSecond(1)})
	at := time.Unix(1700000000, 0)
	for i := range 200_000 {
		k.AllowAt(at.Add(time.Duration(i)*time.Millisecond), i, 1)
	}
	if n := k.Len(); n > 20_000 {
		t.Errorf("%d keys remembered where about 1000 are not idle", n)
	}
}

func TestPlanOfAKeyChangesLiveAndReschedulesWaitingCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var perSecond atomic.Int64
		perSecond.Store(1)
		k, err := weir.NewKeyedFunc(func(string) weir.Limit {
			return weir.TokenBucket{Rate: weir.PerSecond(perSecond.Load()), Burst: 1}
		}, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		k.Allow("acme")
		start := time.Now()
		released := make(chan time.Duration, 1)
		go func() {
			if err := k.Wait(t.Context(), "acme"); err != nil {
				t.Error(err)
			}
			released <- time.Since(start)
		}()
		time.Sleep(500 * time.Millisecond)
		perSecond.Store(10)
		k.Refresh()
		if at := <-released; at != 550*time.Millisecond {
			t.Errorf("released after %v, want 550ms: half a unit was missing when the rate rose to 10/s", at)
		}
		perSecond.Store(0)
		if err := k.Wait(t.Context(), "acme"); !errors.Is(err, weir.ErrLimit) || k.Allow("acme") {
			t.Errorf("a key with an invalid limit: %v, want ErrLimit and a refusal", err)
		}
	})
}
