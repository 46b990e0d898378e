package weir_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// A gate refuses a caller with a time before its newest release. On the limiter's own clock that does not happen: two
// callers that read the clock at once and reach the lock in the other order are decided as if they had read it there.
func TestNoCallerIsRefusedForReadingTheClockJustBeforeAnother(t *testing.T) {
	const budget = 1 << 40
	gate := weir.RateGate{Rate: weir.Per(budget, 366*24*time.Hour)}
	lim := mustNew(t, gate)
	keyed := mustKeyed[string](t, gate)
	rule, err := weir.NewRule("gate", gate)
	if err != nil {
		t.Fatal(err)
	}
	engine := weir.NewMemory(weir.MemoryOptions{})
	for name, allow := range map[string]func() bool{
		"Limiter": lim.Allow,
		"Keyed":   func() bool { return keyed.Allow("a") },
		"Memory": func() bool {
			d, err := engine.Take(context.Background(), rule.For("a", 1))
			return err == nil && d.Allowed
		},
	} {
		var refused atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 20_000 {
					if !allow() {
						refused.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := refused.Load(); n > 0 {
			t.Errorf("%s: %d of 80000 refused within a budget of %d", name, n, int64(budget))
		}
	}
}
