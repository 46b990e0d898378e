package pace

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// A warm wait reads nothing of the texts and fields of limits.
func TestWhatAQueueKnowsOfARuleIsWorkedOutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := NewQueue(struct{ weir.Engine }{weir.NewMemory(weir.MemoryOptions{})}, QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		vendor := mustRule(t, "vendor=cycle 50/1s and token bucket 5/s burst 5")
		if _, err := q.Wait(t.Context(), vendor.For("k", 1)); err != nil {
			t.Fatal(err)
		}
		kept := enginekit.Keep(vendor, func(*weir.Rule) *traits {
			t.Error("a wait left nothing with its rule")
			return &traits{}
		})
		if want := (traits{capacity: 5, unit: 200 * time.Millisecond, most: 25}); *kept != want {
			t.Errorf("got %+v, want %+v: the smaller capacity, the slower unit, and half the permits of a cycle", *kept, want)
		}
	})
}
