package enginekit_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// A layer that raises each cost by 1 and hides what remains does so in every call, alone or among others, and leaves the calls of
// its caller alone.
func TestALayerSeesEachDecisionOfACall(t *testing.T) {
	rule := newRule(t, "r", weir.FixedWindow{Rate: weir.PerHour(10)})
	seen := 0
	layered := weir.Wrap(weir.NewMemory(weir.MemoryOptions{}), func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		changed := enginekit.Copied(call)
		for i := range enginekit.Decisions(&changed) {
			c, _, _, _ := enginekit.DecisionAt(&changed, &weir.Answer{}, nil, i)
			c.Requests = []weir.Request{rule.For(c.Requests[0].Key, c.Requests[0].Cost+1)}
		}
		a, err := next(ctx, changed)
		for i := range enginekit.Decisions(&call) {
			c, d, _, err := enginekit.DecisionAt(&call, &a, err, i)
			if c.Requests[0].Cost != 2 || err != nil || d.Limit != 10 {
				t.Errorf("got %+v and %+v, %v", c, d, err)
			}
			seen++
			d.Remaining = -d.Remaining
		}
		return a, err
	})
	if d, err := layered.Take(t.Context(), rule.For("k", 2)); err != nil || d.Remaining != -7 {
		t.Errorf("alone: got %+v, %v, want -7 remaining", d, err)
	}
	results := make([]weir.Result, 2)
	err := layered.Each(t.Context(), enginekit.Calls(weir.OpTake, rule.For("k", 2), rule.For("l", 2)), results)
	if err != nil || results[0].Decision.Remaining != -4 || results[1].Decision.Remaining != -7 {
		t.Errorf("among others: got %+v, %v, want -4 and -7 remaining", results, err)
	}
	if _, err := layered.Do(t.Context(), weir.Call{Op: weir.OpEach}); err != nil || seen != 3 {
		t.Errorf("the layer saw %d decisions, want 3: %v", seen, err)
	}
}

// After an error of the whole call each decision has it, and calls without a place for their result are left out.
func TestEachDecisionHasTheErrorOfItsCall(t *testing.T) {
	rule, failed := newRule(t, "r", weir.FixedWindow{Rate: weir.PerHour(10)}), errors.New("away")
	call := weir.Call{Op: weir.OpEach, Each: &weir.Batch{Calls: enginekit.Calls(weir.OpPeek, rule.For("a", 1), rule.For("b", 1)), Results: make([]weir.Result, 1)}}
	if n := enginekit.Decisions(&call); n != 1 {
		t.Errorf("got %d decisions, want 1", n)
	}
	if c, _, _, err := enginekit.DecisionAt(&call, &weir.Answer{}, failed, 0); c.Requests[0].Key != "a" || err != failed {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestACallThatIsNoneOfABatchIsNotDecided(t *testing.T) {
	rule := newRule(t, "r", weir.FixedWindow{Rate: weir.PerHour(10)})
	calls, results := []weir.Call{{Op: weir.OpReset, Requests: []weir.Request{rule.For("k", 0)}}, {Op: weir.OpPeek}}, make([]weir.Result, 2)
	err := enginekit.DecideEach(&weir.Batch{Calls: calls, Results: results}, func(c weir.Call) (weir.Answer, error) {
		return weir.Answer{Decision: weir.Decision{Allowed: true, Key: c.Op.String()}}, nil
	})
	if err != nil || !errors.Is(results[0].Err, errors.ErrUnsupported) || results[1].Decision.Key != "peek" {
		t.Errorf("got %+v, %v, want the reset refused, and the peek decided", results, err)
	}
	if err := enginekit.DecideEach(&weir.Batch{Calls: calls}, nil); !errors.Is(err, weir.ErrRequest) {
		t.Errorf("two calls without results: %v", err)
	}
}

func TestADecisionNamesOneOfItsRequests(t *testing.T) {
	a, b := newRule(t, "a", weir.FixedWindow{Rate: weir.PerHour(10)}), newRule(t, "b", weir.FixedWindow{Rate: weir.PerHour(10)})
	requests := []weir.Request{{Key: "k"}, a.For("k", 1), b.For("j", 1), b.For("k", 1)}
	for i := range requests[1:] {
		if got := enginekit.Binding(&weir.Decision{Rule: requests[i+1].Rule.Name(), Key: requests[i+1].Key}, requests); got != i+1 {
			t.Errorf("request %d: got %d", i+1, got)
		}
	}
	if got := enginekit.Binding(&weir.Decision{Rule: "other", Key: "k"}, requests); got != 0 {
		t.Errorf("a decision on none of them: got %d, want 0", got)
	}
}
