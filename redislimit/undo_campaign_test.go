package redislimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
)

// takings are what callers heard of their takes, in units.
type takings struct {
	mu            sync.Mutex
	sure, unknown int64
}

// take takes some units for a caller that may leave.
func (k *takings) take(e *Engine, q weir.Request, within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	d, err := e.Take(ctx, q)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil && d.Allowed:
		k.sure += q.Cost
	case weir.WasCounted(err) != weir.CountedNo:
		k.unknown += q.Cost
	}
}

// Callers leave, replies are late or cut, and some engines are closed in between. Whatever is undone comes back once, so that no
// unit of a caller that was admitted comes back. What stays spent without one is of callers that were told so, and none of it
// while no reply was cut and the engine lives.
func TestFaultUndosGiveBackOnceWhatNobodyHas(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	near := openFor(t, "redis://"+server.Addr, Options{})
	warmUp(t, near)
	for seed := range randtest.Seeds(t, 12, 4) {
		draw := rand.New(rand.NewPCG(seed, 5))
		p := startProxy(t, server.Addr)
		far := openFor(t, "redis://"+p.addr+"?timeout=10s", Options{})
		warmUp(t, far)
		rule, told := mustRule(t, fmt.Sprintf("undone-%d=fixed window 1000000/300d", seed)), &takings{}
		cuts, closes := draw.IntN(2) == 0, draw.IntN(3) == 0
		var callers sync.WaitGroup
		for range 30 {
			for range 1 + draw.IntN(8) {
				q, within := rule.For("k", 1+draw.Int64N(9)), time.Duration(1+draw.IntN(20))*time.Millisecond
				callers.Go(func() { told.take(far, q, within) })
			}
			p.stall.Store(draw.IntN(2) == 0)
			p.cut.Store(cuts && draw.IntN(4) == 0)
			time.Sleep(time.Duration(draw.IntN(10)) * time.Millisecond)
		}
		if closes {
			far.Close()
		}
		p.stall.Store(false)
		callers.Wait()
		eventually(t, "the undos have ended", func() error {
			if s, unheard := far.Stats(), far.calls.Stats.Unheard.Load(); !closes && s.Undoing+s.InFlight+int(unheard) > 0 {
				return fmt.Errorf("%d unheard, %+v", unheard, s)
			}
			return nil
		})
		d, err := near.Peek(t.Context(), rule.For("k", 0))
		used, s := 1_000_000-d.Remaining, far.Stats()
		switch {
		case err != nil || used < told.sure || used > told.sure+told.unknown:
			t.Errorf("seed %d: %d units are used, want %d that were admitted, and up to %d of callers that were told so: %v", seed, used, told.sure, told.unknown, err)
		case used > told.sure && p.cuts.Load() == 0 && s.Abandoned == 0 && !closes:
			t.Errorf("seed %d: %d units stay spent for no reason: %+v", seed, used-told.sure, s)
		}
		t.Logf("seed %d: %d admitted, %d unknown, %d stay spent; %d cuts, closed: %v, %+v", seed, told.sure, told.unknown, used-told.sure, p.cuts.Load(), closes, s)
	}
}
