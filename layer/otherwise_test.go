package layer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
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
		for range 25 { // so that prefetch has a stock, and deny until a refusal
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
