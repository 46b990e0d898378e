package weir_test

import (
	"testing"

	"github.com/weirflow/weir"
)

// Cancel of one rule of all three limits gives back the rate and the quota, too, because the work was not done.
func TestCancelOfOneRuleGivesTheRateBackWithTheSlot(t *testing.T) {
	rule, err := weir.ParseRule("vendor=concurrency 8 lease 1m and sliding log 100/10s and fixed window 5000/d")
	if err != nil {
		t.Fatal(err)
	}
	engine := weir.NewMemory(weir.MemoryOptions{Clock: still})
	admitted := 0
	for range 200 {
		r, err := engine.Reserve(t.Context(), rule.For("vendor", 1))
		if err != nil {
			t.Fatal(err)
		}
		if r.Decision.Allowed {
			admitted++
		}
		if err := r.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if admitted != 200 {
		t.Errorf("%d of 200 requests at one instant were admitted, want all, as each was given back", admitted)
	}
}
