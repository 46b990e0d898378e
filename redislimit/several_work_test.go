package redislimit

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// While versions of a rule with other limits or other rates are in use at once, each decision reads and keeps the states
// of all of them. A call makes few of these.
func TestACallOnStatesOfOtherVersionsDoesABoundedAmountOfWork(t *testing.T) {
	const callers, most = 128, 40
	counting := newCountingSender(t, redistest.Start(t))
	engine, err := NewWith(counting, Options{})
	if err != nil {
		t.Fatal(err)
	}
	windows := func(period time.Duration) (limits []weir.Limit) {
		for i := range 8 {
			limits = append(limits, weir.FixedWindow{Rate: weir.Per(1e9, period+time.Duration(i)*time.Second)})
		}
		return limits
	}
	buckets := func(n int64, period time.Duration) (limits []weir.Limit) {
		for i := range int64(8) {
			limits = append(limits, weir.TokenBucket{Rate: weir.Per(n-i, period), Burst: 1e9})
		}
		return limits
	}
	day := 24 * time.Hour
	for name, versions := range map[string][][]weir.Limit{
		"other limits": {windows(100 * day), windows(101 * day), windows(102 * day), windows(103 * day)},
		"other rates":  {buckets(999_999_937, 300*day), buckets(899_999_963, 299*day)},
	} {
		var decisions []wire.Decision
		for i, limits := range versions {
			rule, err := weir.NewRule(name, limits...)
			if err != nil {
				t.Fatal(err)
			}
			for k := range callers {
				q := rule.For(fmt.Sprint("k", k), 4e7)
				if i < len(versions)-1 {
					if d, err := engine.Take(t.Context(), q); err != nil || !d.Allowed {
						t.Fatalf("Take: %+v, %v", d, err)
					}
					continue
				}
				parts, _, err := engine.parts(nil, []weir.Request{q}, 0)
				if err != nil {
					t.Fatal(err)
				}
				decisions = append(decisions, wire.Decision{Op: wire.OpTake, Parts: parts})
			}
		}
		counting.most()
		engine.calls.Run([]*calls.Submission{calls.NewSubmission(decisions...)})
		entries, bytes, calls := counting.most()
		t.Logf("%s: %.0f numbers and %.0f KB in the largest of %d calls", name, entries, bytes/1024, calls)
		if calls < callers/most {
			t.Errorf("%s: %d calls made %d decisions, want at most %d a call", name, calls, callers, most)
		}
		for i := range decisions {
			if d := &decisions[i]; d.Err != nil || !d.Admitted {
				t.Fatalf("%s: caller %d: admitted %t, %v", name, i, d.Admitted, d.Err)
			}
		}
	}
}
