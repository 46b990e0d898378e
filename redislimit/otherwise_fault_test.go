package redislimit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/layer"
)

// Replies to some tries are lost, and the callers ask again until they are answered: each is paid for once, and the floor gets units
// back meanwhile.
func TestFaultCallsWithOtherwiseArePaidOnceThoughRepliesAreLost(t *testing.T) {
	server := redistest.Start(t)
	proxy := startProxy(t, server.Addr)
	below := openFor(t, "redis://"+proxy.addr, Options{})
	direct := openFor(t, "redis://"+server.Addr, Options{})
	asked := map[string]int{}
	engine, err := layer.Otherwise(weir.Wrap(below, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		name := call.Requests[0].Rule.Name()
		asked[name]++
		proxy.cut.Store(name == "pool" && asked[name]%2 == 1 || name == "floor" && asked[name]%5 == 4)
		return next(ctx, call)
	}))
	if err != nil {
		t.Fatal(err)
	}
	floor, pool := mustRule(t, "floor=fixed window 200/300d"), mustRule(t, "pool=fixed window 200/300d")
	shared := pool.For("all", 1)
	chain := floor.For("k", 1)
	chain.Otherwise = &shared
	if d, err := direct.Take(t.Context(), floor.For("k", 200)); err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	give := func(n int64) int64 {
		if _, err := direct.Return(t.Context(), floor.For("k", max(n, 0))); err != nil {
			t.Fatal(err)
		}
		if _, err := direct.Record(t.Context(), floor.For("k", max(-n, 0))); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var lost, back, byFloor, byPool int64
	for i := range 100 {
		if i%4 == 0 {
			back += give(1)
		}
		for {
			a, err := engine.Do(t.Context(), weir.Call{Requests: []weir.Request{chain}, Identity: fmt.Sprint("decision ", i)})
			if err != nil {
				lost++
				back += give(1) // before it is asked again, the floor has a unit once more
				continue
			}
			if !a.Decision.Allowed {
				t.Fatalf("decision %d: %+v", i, a.Decision)
			}
			if a.Paid == nil {
				byFloor++
			} else {
				byPool++
			}
			break
		}
		d, err := direct.Peek(t.Context(), floor.For("k", 0))
		if err != nil {
			t.Fatal(err)
		}
		back += give(-d.Remaining)
	}
	f, err1 := direct.Peek(t.Context(), floor.For("k", 0))
	p, err2 := direct.Peek(t.Context(), pool.For("all", 0))
	if err := errors.Join(err1, err2); err != nil || f.Remaining != back-byFloor || p.Remaining != 200-byPool {
		t.Errorf("%d were paid by the floor, which got %d back, and %d by the pool; %d and %d are left (%v), want %d and %d", byFloor, back, byPool, f.Remaining, p.Remaining, err, back-byFloor, 200-byPool)
	}
	if lost < 50 || byPool < 20 || byFloor < 5 {
		t.Errorf("%d replies were lost, %d paid by the pool and %d by the floor: it proves little", lost, byPool, byFloor)
	}
}
