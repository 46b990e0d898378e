package redislimit_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

func TestRulesWithoutStateAskNoServer(t *testing.T) {
	engine := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{})
	free, none := newRule(t, "free", weir.Unlimited{}, weir.Unlimited{}), newRule(t, "none", weir.Unlimited{}, weir.DenyAll{})
	ctx := t.Context()
	results := make([]weir.Result, 3)
	for what, err := range map[string]error{
		"Each":  engine.Each(ctx, enginekit.Calls(weir.OpTake, free.For("a", 2), none.For("a", 1), free.For("b", -1)), results),
		"Reset": engine.Reset(ctx, free.For("a", 0), none.For("b", 0)),
		"Check": engine.Check(free, none),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if !results[0].Decision.Allowed || results[1].Decision.Allowed || results[1].Err != nil || !errors.Is(results[2].Err, weir.ErrRequest) {
		t.Errorf("Each: got %+v, want one admitted, one refused and a bad request", results)
	}
	if d, err := engine.Take(ctx, free.For("a", 1), none.For("b", 1)); err != nil || d.Allowed || d.Rule != "none" || d.RetryAfter != weir.Never {
		t.Errorf("Take: got %+v and %v, want it refused by none", d, err)
	}
	if times, d, err := weir.TakeUpTo(ctx, engine, 7, free.For("a", 1)); err != nil || times != 7 || !d.Allowed {
		t.Errorf("TakeUpTo: %d times with %+v and %v, want 7", times, d, err)
	}
	if s := engine.Stats(); s.Calls != 0 {
		t.Errorf("the server was called %d times, want never", s.Calls)
	}
	engine.Close()
	if _, err := engine.Take(ctx, free.For("a", 1)); !errors.As(err, new(*redislimit.Error)) {
		t.Errorf("after Close: error %v, want one of the engine", err)
	}
}

// A take that DenyAll refuses writes nothing on any lane, and sends no key for it.
func TestDenyAllRefusesWithoutAWrite(t *testing.T) {
	server := redistest.Start(t)
	refusedWithoutAWrite(t, dial(t, server), 1)
	if keys := server.Do("DBSIZE"); keys != int64(0) {
		t.Errorf("the server has %v keys, want none", keys)
	}
}

func refusedWithoutAWrite(t *testing.T, client rueidis.Client, calls uint64) {
	keys := 0
	engine := newEngine(t, client, redislimit.Options{Prefix: fresh(), Observe: func(_ context.Context, c redislimit.ScriptCall) { keys += c.Keys }})
	denied := newRule(t, "r", weir.TokenBucket{Rate: weir.Per(5, ages)}, weir.DenyAll{}, weir.SlidingLog{Rate: weir.Per(4, ages)})
	other := newRule(t, "other", weir.FixedWindow{Rate: weir.Per(6, ages)})
	memory := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }})
	q := []weir.Request{other.For("a", 2), denied.For("b", 3), newRule(t, "free", weir.Unlimited{}).For("c", 1)}
	for verb, ask := range map[string]func(weir.Engine) (weir.Decision, error){
		"Take": func(e weir.Engine) (weir.Decision, error) { return e.Take(t.Context(), q...) },
		"Peek": func(e weir.Engine) (weir.Decision, error) { return e.Peek(t.Context(), q...) },
		"TakeUpTo": func(e weir.Engine) (weir.Decision, error) {
			times, d, err := weir.TakeUpTo(t.Context(), e, 7, q...)
			if times != 0 {
				t.Errorf("taken %d times", times)
			}
			return d, err
		},
	} {
		before := engine.Stats().Calls
		keys = 0
		got, err := ask(engine)
		want, _ := ask(memory)
		if got != want || err != nil {
			t.Errorf("%s: got %+v and %v, want %+v", verb, got, err, want)
		}
		if sent := engine.Stats().Calls - before; sent != calls || keys != 3 {
			t.Errorf("%s: %d keys in %d calls, want 3 in %d: none for DenyAll", verb, keys, sent, calls)
		}
	}
}
