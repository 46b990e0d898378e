package layer_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/otherwisetest"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/limittest"
)

// or returns a request with another one to make in its place.
func or(q, instead weir.Request) weir.Request {
	q.Otherwise = &instead
	return q
}

// A layer that answers in place of the engine must not ignore what the engine would refuse.
func TestNoLayerIgnoresARequestInPlaceOfAnother(t *testing.T) {
	floor, pool := mustRule(t, "floor=20/h"), mustRule(t, "pool=40/h")
	prefetched, err := layer.Prefetch(newRemote(), layer.PrefetchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer prefetched.Close()
	denied, err := layer.DenyUntil(newRemote(), layer.DenyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	away := newRemote()
	away.fails.Store(true)
	guarded, err := layer.Guard(away, layer.GuardOptions{OnFailure: layer.Allow, Deadline: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer guarded.Close()
	for name, e := range map[string]weir.Engine{"prefetch": prefetched, "deny until": denied, "guard": guarded} {
		for range map[string]int{"prefetch": 5, "deny until": 21, "guard": 1}[name] { // so that prefetch has a stock, and deny until a refusal
			if _, err := e.Take(t.Context(), floor.For("k", 1)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		var bad *weir.RequestError
		if d, err := e.Take(t.Context(), or(floor.For("k", 1), pool.For("k", 1))); !errors.As(err, &bad) || bad.Field != "otherwise" {
			t.Errorf("%s: got %+v and error %v, want a *weir.RequestError about otherwise", name, d, err)
		}
	}
}

func replacing(t testing.TB, e weir.Engine) weir.Engine {
	t.Helper()
	over, err := layer.Otherwise(e)
	if err != nil {
		t.Fatal(err)
	}
	return over
}

func TestAnEngineWithOtherwiseIsAsWithout(t *testing.T) {
	limittest.Run(t, func(clock func() int64) weir.Engine {
		e := replacing(t, weir.NewMemory(weir.MemoryOptions{Clock: clock}))
		return weir.Wrap(e, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
			calls := []weir.Call{call}
			if call.Each != nil {
				calls = call.Each.Calls
			}
			if slices.ContainsFunc(calls, func(c weir.Call) bool {
				return slices.ContainsFunc(c.Requests, func(q weir.Request) bool { return q.Otherwise != nil })
			}) {
				return weir.NewMemory(weir.MemoryOptions{}).Do(ctx, call) // an engine without refuses them
			}
			return next(ctx, call)
		})
	})
}

func TestOtherwiseIsTryReplaceTry(t *testing.T) {
	otherwisetest.Duel(t, randtest.Rounds(t, 400, 100), func(clock func() int64) weir.Engine {
		return weir.NewMemory(weir.MemoryOptions{Clock: clock})
	})
}

func BenchmarkOtherwise(b *testing.B) {
	open, spent, pool := mustRule(b, "open=1000000000/s"), mustRule(b, "spent=1/300d"), mustRule(b, "pool=1000000000/s")
	memory := weir.NewMemory(weir.MemoryOptions{})
	takes(b, memory, 1, spent, "k")
	over := replacing(b, memory)
	for _, c := range []struct {
		name    string
		e       weir.Engine
		request weir.Request
	}{
		{"without the layer", memory, open.For("k", 1)},
		{"nothing in its place", over, open.For("k", 1)},
		{"floor admits", over, or(open.For("k", 1), pool.For("all", 1))},
		{"pool pays", over, or(spent.For("k", 1), pool.For("all", 1))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d, err := c.e.Take(b.Context(), c.request); err != nil || !d.Allowed {
					b.Fatal(d, err)
				}
			}
		})
	}
}
