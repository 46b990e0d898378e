package layer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// A call that has nothing in place of its requests costs what it cost before, and one that has costs one call more if it is refused.
func TestOnlyARefusedChainCostsTheEngineAnotherCall(t *testing.T) {
	r := newRemote()
	e := replacing(t, r)
	floor, pool := mustRule(t, "floor=3/h"), mustRule(t, "pool=100/h")
	chain := or(floor.For("a", 1), pool.For("all", 1))
	each := func(requests ...weir.Request) func() error {
		return func() error {
			var calls []weir.Call
			for _, q := range requests {
				calls = append(calls, weir.Call{Requests: []weir.Request{q}})
			}
			return e.Each(t.Context(), calls, make([]weir.Result, len(calls)))
		}
	}
	take := func(q weir.Request) func() error {
		return func() error { _, err := e.Take(t.Context(), q); return err }
	}
	for _, tt := range []struct {
		what string
		call func() error
		want int64
	}{
		{"a take", take(pool.For("x", 1)), 1},
		{"a refused take", take(floor.For("x", 9)), 1},
		{"a peek", func() error { _, err := e.Peek(t.Context(), pool.For("x", 1)); return err }, 1},
		{"a reserve", func() error { _, err := e.Reserve(t.Context(), pool.For("x", 1)); return err }, 1},
		{"takes in one call", each(pool.For("x", 1), floor.For("x", 9)), 1},
		{"a chain whose floor admits", take(chain), 1},
		{"chains whose floors admit", each(chain, chain), 1},
		{"a chain whose floor refuses", take(chain), 2},
		{"chains of which some are refused", each(chain, chain, pool.For("x", 1), or(floor.For("b", 1), pool.For("all", 1))), 2},
	} {
		before := r.calls.Load()
		if err := tt.call(); err != nil {
			t.Errorf("%s: %v", tt.what, err)
		}
		if n := r.calls.Load() - before; n != tt.want {
			t.Errorf("%s: %d calls of the engine, want %d", tt.what, n, tt.want)
		}
	}
	denied := replacing(t, denying(t, r))
	for i, want := range []int64{2, 1, 1} { // the refusal of the floor is repeated in process
		before := r.calls.Load()
		if d, err := denied.Take(t.Context(), chain); err != nil || d.Rule != "pool" {
			t.Fatalf("%+v, %v", d, err)
		}
		if n := r.calls.Load() - before; n != want {
			t.Errorf("take %d of an exhausted tenant: %d calls of the engine, want %d", i, n, want)
		}
	}
}

func TestABlockedTenantDoesNotGetThePool(t *testing.T) {
	blocked, floor := mustRule(t, "blocked=deny all"), mustRule(t, "floor=9/h")
	pool := mustRule(t, "pool=100/h")
	e := replacing(t, weir.NewMemory(weir.MemoryOptions{}))
	for _, requests := range [][]weir.Request{{or(blocked.For("a", 1), pool.For("all", 1))}, {or(floor.For("a", 1), pool.For("all", 1)), or(blocked.For("a", 1), pool.For("all", 1))}} {
		if d, err := e.Take(t.Context(), requests...); err != nil || d.Allowed || d.Rule != "blocked" || d.RetryAfter != weir.Never {
			t.Errorf("blocked: got %+v, %v", d, err)
		}
	}
	if left := remaining(t, e, pool, "all"); left != 100 {
		t.Errorf("%d of the pool are left, want 100", left)
	}
}

func TestABadChainIsRefusedThoughTheFirstRuleAdmits(t *testing.T) {
	rules := make([]*weir.Rule, 6)
	for i := range rules {
		rules[i] = mustRule(t, string(rune('a'+i))+"=9/h")
	}
	chain := func(rules ...*weir.Rule) (q weir.Request) {
		for i := len(rules) - 1; i >= 0; i-- {
			if q = or(rules[i].For("k", 1), q); i == len(rules)-1 {
				q.Otherwise = nil
			}
		}
		return q
	}
	circle := rules[0].For("k", 1)
	circle.Otherwise = &circle
	r := newRemote()
	e := replacing(t, r)
	for _, tt := range []struct {
		what, field, says string
		q                 weir.Request
	}{
		{"a circle", "otherwise", `comes back to rule "a"`, circle},
		{"a rule twice", "otherwise", `comes back to rule "b"`, chain(rules[0], rules[1], rules[2], rules[1])},
		{"five in place of another", "otherwise", "more than 4", chain(rules...)},
		{"a ban with something in its place", "otherwise", "has a ban", or(rules[0].For("k", 1), or(mustRule(t, "strict=1/h and ban 1m after 2/1m").For("k", 1), rules[1].For("k", 1)))},
		{"no rule", "rule", "NewRule", or(rules[0].For("k", 1), weir.Request{Key: "k"})},
		{"a negative cost", "cost", "-1", or(rules[0].For("k", 1), rules[1].For("k", -1))},
		{"a key too long", "key", "longer", or(rules[0].For("k", 1), rules[1].For(strings.Repeat("k", weir.MaxKey+1), 1))},
	} {
		for _, op := range []weir.Op{weir.OpTake, weir.OpPeek, weir.OpReserve, weir.OpTakeUpTo} {
			var bad *weir.RequestError
			if _, err := e.Do(t.Context(), weir.Call{Op: op, Most: 1, Requests: []weir.Request{tt.q}}); !errors.As(err, &bad) || bad.Field != tt.field || !strings.Contains(bad.Reason, tt.says) {
				t.Errorf("%v with %s: got %v, want a *weir.RequestError about %s that says %q", op, tt.what, err, tt.field, tt.says)
			}
		}
		results := make([]weir.Result, 2)
		if err := e.Each(t.Context(), []weir.Call{{Requests: []weir.Request{tt.q}}, {Op: weir.OpPeek, Requests: []weir.Request{rules[0].For("k", 1)}}}, results); err != nil || results[0].Err == nil || results[1].Err != nil {
			t.Errorf("Each with %s: got %v, %v and %v, want an error of the first alone", tt.what, err, results[0].Err, results[1].Err)
		}
	}
	if d, err := e.Take(t.Context(), chain(rules[:5]...)); err != nil || !d.Allowed {
		t.Errorf("four in place of another: %+v, %v", d, err)
	}
	if _, err := weir.ReserveAhead(t.Context(), e, time.Hour, chain(rules[:2]...)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("reserve ahead: got %v, want errors.ErrUnsupported", err)
	}
	if left := remaining(t, e, rules[0], "k"); left != 8 {
		t.Errorf("%d are left, want 8", left)
	}
}

func TestACallIsTriedEightTimes(t *testing.T) {
	r := newRemote()
	e := replacing(t, r)
	none, open := make([]*weir.Rule, 8), mustRule(t, "open=1000/h")
	for i := range none {
		none[i] = mustRule(t, string(rune('a'+i))+"=1/h")
		takes(t, r.memory, 1, none[i], "k")
	}
	for _, tt := range []struct {
		links   int
		allowed bool
	}{{7, true}, {8, false}} { // as many refusals, in two chains
		q, p := or(none[0].For("k", 1), or(none[1].For("k", 1), or(none[2].For("k", 1), or(none[3].For("k", 1), open.For("k", 1))))), open.For("k", 1)
		for i := 4; i < tt.links; i++ {
			p = or(none[i].For("k", 1), p)
		}
		before := r.calls.Load()
		if d, err := e.Take(t.Context(), q, p); err != nil || d.Allowed != tt.allowed {
			t.Errorf("%d refusals: got %+v, %v, want allowed %v", tt.links, d, err, tt.allowed)
		}
		if n := r.calls.Load() - before; n != 8 {
			t.Errorf("%d refusals: %d calls of the engine, want 8", tt.links, n)
		}
	}
}

// Callers of many goroutines get what the floors and the pool have, and no more.
func TestManyGoroutinesGetTheFloorsAndThePool(t *testing.T) {
	e := replacing(t, weir.NewMemory(weir.MemoryOptions{}))
	floor, pool := mustRule(t, "floor=50/300d burst 50"), mustRule(t, "pool=100/300d burst 100")
	var admitted, paidByPool atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			q := or(floor.For(key(i%3), 1), pool.For("all", 1))
			for j := range 60 {
				a, err := weir.Answer{}, error(nil)
				if j%2 == 0 {
					a, err = e.Do(t.Context(), weir.Call{Op: weir.OpTake, Requests: []weir.Request{q}})
				} else {
					results := make([]weir.Result, 1)
					err = e.Each(t.Context(), []weir.Call{{Requests: []weir.Request{q}}}, results)
					a.Decision, a.Paid = results[0].Decision, results[0].Paid
				}
				if err != nil {
					t.Error(err)
				}
				if a.Decision.Allowed {
					admitted.Add(1)
				}
				if len(a.Paid) > 0 {
					paidByPool.Add(1)
				}
			}
		})
	}
	all.Wait()
	if admitted.Load() != 3*50+100 || paidByPool.Load() != 100 {
		t.Errorf("%d admitted, %d by the pool, want 250 and 100", admitted.Load(), paidByPool.Load())
	}
}

// The engine fails, or loses its answer, between the tries of a call.
func TestAFailureBetweenTriesIsAnErrorOrTheGuards(t *testing.T) {
	for _, tt := range []struct {
		policy layer.Policy
		fault  func(r *remote, on bool)
		err    bool
		left   int64 // of the pool's 10, once the engine is back
	}{
		{layer.Deny, func(r *remote, on bool) { r.fails.Store(on) }, true, 10},
		{layer.Deny, func(r *remote, on bool) { r.loses.Store(on) }, true, 9}, // the units stay spent
		{layer.Local, func(r *remote, on bool) { r.fails.Store(on) }, false, 9},
		{layer.Allow, func(r *remote, on bool) { r.fails.Store(on) }, false, 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRemote()
			g := guarded(t, r, layer.GuardOptions{OnFailure: tt.policy, Peers: 1})
			floor, pool := mustRule(t, "floor=1/300d"), mustRule(t, "pool=10/300d")
			takes(t, g, 1, floor, "a")
			e := replacing(t, weir.Wrap(g, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
				tt.fault(r, call.Op == weir.OpTake && call.Requests[0].Rule == pool)
				return next(ctx, call)
			}))
			a, err := e.Do(t.Context(), weir.Call{Op: weir.OpTake, Requests: []weir.Request{or(floor.For("a", 1), pool.For("all", 1))}})
			if (err != nil) != tt.err || a.Decision.Allowed == tt.err {
				t.Errorf("%v: got %+v and %v, want an error %v", tt.policy, a.Decision, err, tt.err)
			}
			tt.fault(r, false)
			time.Sleep(10 * time.Second) // what was granted here is recorded
			if left := remaining(t, r.memory, pool, "all"); left != tt.left {
				t.Errorf("%v: %d of the pool are left, want %d", tt.policy, left, tt.left)
			}
			if left := remaining(t, r.memory, floor, "a"); left != 0 {
				t.Errorf("%v: %d of the floor are left, want 0", tt.policy, left)
			}
		})
	}
}

// The answer to the second try is lost, and its slot is released whoever asked for it.
func TestASlotOfATryWithoutAnAnswerIsReleased(t *testing.T) {
	ways := map[string]func(t *testing.T, e weir.Engine, q weir.Request){
		"reserve": func(t *testing.T, e weir.Engine, q weir.Request) {
			held, err := e.Reserve(t.Context(), q)
			if err == nil {
				t.Fatal("got no error")
			}
			_ = held.Cancel(t.Context())
		},
		"reserve through a shadow": func(t *testing.T, e weir.Engine, q weir.Request) {
			e = shadowed(t, e, layer.ShadowOptions{Candidates: map[string]*weir.Rule{"other": mustRule(t, "other=1/h")}})
			held, err := e.Reserve(t.Context(), q)
			if err == nil {
				t.Fatal("got no error")
			}
			_ = held.Cancel(t.Context())
		},
		"drop": func(t *testing.T, e weir.Engine, q weir.Request) {
			take := weir.Call{Op: weir.OpTake, Requests: []weir.Request{q}, Lease: 7}
			if _, err := e.Do(t.Context(), take); err == nil {
				t.Fatal("got no error")
			}
			weir.Kit.Drop(e, take)
		},
	}
	for name, way := range ways {
		synctest.Test(t, func(t *testing.T) {
			r := newRemote()
			floor, pool := mustRule(t, "floor=concurrency 1 lease 1h"), mustRule(t, "pool=concurrency 5 lease 1h")
			if _, err := r.memory.Do(t.Context(), weir.Call{Op: weir.OpTake, Requests: []weir.Request{floor.For("a", 1)}, Lease: 1}); err != nil {
				t.Fatal(err)
			}
			var losing weir.Engine
			losing = weir.Wrap(r, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
				if call.Op == weir.OpReserve { // as every engine on a network
					return weir.Kit.Reserve(ctx, losing, call)
				}
				r.loses.Store(call.Op != weir.OpReturn && call.Requests[0].Rule.Name() == "pool")
				return next(ctx, call)
			})
			e := replacing(t, losing)
			way(t, e, or(floor.For("a", 1), pool.For("all", 2)))
			time.Sleep(10 * time.Second)
			if left := remaining(t, r.memory, pool, "all"); left != 5 {
				t.Errorf("%s: %d slots of the pool are free, want 5", name, left)
			}
			if left := remaining(t, r.memory, floor, "a"); left != 0 {
				t.Errorf("%s: %d slots of the floor are free, want 0", name, left)
			}
		})
	}
}

// A reservation through a layer above, which makes it by a take, settles what was paid.
func TestAReservationThroughALayerAboveSettlesWhoPaid(t *testing.T) {
	floor, pool := mustRule(t, "floor=1/300d and concurrency 1 lease 1h"), mustRule(t, "pool=9/300d and concurrency 9 lease 1h")
	below := replacing(t, weir.NewMemory(weir.MemoryOptions{}))
	e := shadowed(t, below, layer.ShadowOptions{Candidates: map[string]*weir.Rule{"other": mustRule(t, "other=1/h")}})
	chain := or(floor.For("a", 1), pool.For("all", 3))
	for i, want := range []string{"floor a 0, pool all 9", "floor a 0, pool all 6"} {
		held, err := e.Reserve(t.Context(), chain)
		if err != nil || !held.Decision.Allowed {
			t.Fatalf("%+v, %v", held, err)
		}
		left := func() string {
			return fmt.Sprintf("floor a %d, pool all %d", remaining(t, e, floor, "a"), remaining(t, e, pool, "all"))
		}
		if got := left(); got != want {
			t.Errorf("reservation %d leaves %s, want %s", i, got, want)
		}
		if take := weir.Kit.TakeOf(held); take.Requests[0].Otherwise != nil || (take.Requests[0].Rule == pool) != (i == 1) {
			t.Errorf("reservation %d holds %+v", i, take.Requests)
		}
		if i == 1 {
			if err := held.Settle(t.Context(), 1); err != nil || left() != "floor a 0, pool all 8" {
				t.Errorf("settled with 1, with error %v, it leaves %s", err, left())
			}
		}
	}
}

func TestAllTriesOfACallEndWithinItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote()
		e := replacing(t, r)
		floor, pool := mustRule(t, "floor=1/h"), mustRule(t, "pool=9/h")
		takes(t, r.memory, 1, floor, "a")
		r.slow.Store(int64(30 * time.Millisecond))
		began := time.Now()
		_, err := e.Do(t.Context(), weir.Call{Op: weir.OpTake, Within: 50 * time.Millisecond, Requests: []weir.Request{or(floor.For("a", 1), pool.For("all", 1))}})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 51*time.Millisecond {
			t.Errorf("got %v after %v, want the end of its time after 50 ms", err, took)
		}
	})
}

// Layers above see who paid. A shadow decides the floor alone.
func TestLayersAboveSeeWhoPaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote()
		floor, pool := mustRule(t, "floor=2/h"), mustRule(t, "pool=9/h")
		var names []string
		observed, err := layer.Observe(shadowed(t, replacing(t, r), layer.ShadowOptions{Candidates: map[string]*weir.Rule{"floor": mustRule(t, "floor=1/h")}}), layer.ObserveOptions{
			Decided: func(_ context.Context, o layer.Observation) { names = append(names, o.Rule+" "+o.Key) },
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			a, err := observed.Do(t.Context(), weir.Call{Op: weir.OpTake, Requests: []weir.Request{or(floor.For("a", 1), pool.For("all", 1))}})
			if err != nil || !a.Decision.Allowed || (a.Decision.Rule == "pool") != (a.Paid != nil) {
				t.Errorf("got %+v, %v", a, err)
			}
		}
		time.Sleep(time.Second)
		if want := []string{"floor a", "floor a", "pool all", "pool all"}; !slices.Equal(names, want) {
			t.Errorf("observed %v, want %v", names, want)
		}
		shadowFloor, shadowPool := mustRule(t, "floor~shadow=1/h"), mustRule(t, "pool~shadow=9/h")
		if f, p := remaining(t, r.memory, shadowFloor, "a"), remaining(t, r.memory, shadowPool, "all"); f != 0 || p != 9 {
			t.Errorf("the shadows have %d of the floor and %d of the pool, want 0 and 9", f, p)
		}
		dry := shadowed(t, replacing(t, r), layer.ShadowOptions{})
		if d, err := dry.Take(t.Context(), or(floor.For("a", 1), pool.For("all", 1))); err != nil || !d.Allowed {
			t.Errorf("a dry run: %+v, %v", d, err)
		}
		time.Sleep(time.Second)
	})
}

func isOption(err error) bool {
	var bad *weir.OptionError
	return errors.As(err, &bad)
}

func TestOtherwiseHasOnePlaceAmongTheLayers(t *testing.T) {
	over := func(e weir.Engine, err error) error {
		if err == nil {
			_, err = layer.Otherwise(e)
		}
		return err
	}
	shadow, err := layer.Shadow(newRemote(), layer.ShadowOptions{})
	if err := over(shadow, err); !isOption(err) {
		t.Errorf("over a shadow: got %v", err)
	}
	if err := over(layer.Otherwise(newRemote())); !isOption(err) {
		t.Errorf("twice: got %v", err)
	}
	if err := over(nil, nil); !isOption(err) {
		t.Errorf("over nothing: got %v", err)
	}
	if _, err := layer.DenyUntil(replacing(t, newRemote()), layer.DenyOptions{}); !isOption(err) || !strings.Contains(err.Error(), "otherwise") {
		t.Errorf("below a deny until: got %v", err)
	}
}
