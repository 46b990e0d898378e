package redislimit

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// A batch works in the space of an earlier one, because garbage would cost it a quarter of the client's time.
func TestEachReusesItsSpace(t *testing.T) {
	e, err := NewWith(admitting{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	rule, err := weir.NewRule("r", weir.TokenBucket{Rate: weir.PerSecond(10)})
	if err != nil {
		t.Fatal(err)
	}
	requests, results := make([]weir.Request, 100), make([]weir.Result, 100)
	for i := range requests {
		requests[i] = rule.For(strconv.Itoa(i), 1)
	}
	// The least of many batches counts: the race detector and a collection empty the pools of some.
	least := uint64(1 << 63)
	for range 200 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := e.Each(t.Context(), enginekit.Calls(weir.OpTake, requests...), results); err != nil || results[99].Err != nil || !results[99].Decision.Allowed {
			t.Fatalf("got error %v and result %+v", err, results[99])
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	t.Logf("%d bytes for a batch of 100", least)
	if least > 20_000 { // 10,000 of them are names of keys
		t.Errorf("a batch of 100 allocates %d bytes, want 20,000 at most", least)
	}
}
