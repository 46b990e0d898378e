package redislimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// keysOn returns a key on each of the masters, in the order of their lanes, which must be that of the masters.
func keysOn(t *testing.T, cluster *redistest.Cluster, e *Engine, masters ...*redistest.Server) (keys []string) {
	t.Helper()
	last := -1
	for i := 0; len(keys) < len(masters) && i < 20000; i++ {
		key := fmt.Sprint("key", i)
		lane := e.keys.Lane(key)
		if lane > last && lane <= last+40 && cluster.Master(cluster.Slot(e.keys.Name(lane, "", ""))) == masters[len(keys)] {
			keys, last = append(keys, key), lane
		}
	}
	if len(keys) < len(masters) {
		t.Fatal("no keys on lanes in this order")
	}
	return keys
}

// The lane of the last part does not answer, or its node is gone, after another lane refused or admitted. Nothing that
// was taken stays.
func TestFaultALaneThatFailsLeaksNothing(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"hangs", "is gone"} {
		cluster := redistest.StartCluster(t, "cluster-require-full-coverage no", "cluster-replica-no-failover yes")
		engine := openFor(t, "redis-cluster://"+cluster.Nodes[0].Addr+"?timeout=2s", Options{})
		keys := keysOn(t, cluster, engine, cluster.Nodes[0], cluster.Nodes[1], cluster.Nodes[2])
		many, one := mustRule(t, "many=fixed window 100/300d"), mustRule(t, "one=fixed window 1/300d")
		slots := mustRule(t, "slots=concurrency 5 lease 1h")
		left := func(rule *weir.Rule, key string) (int64, error) {
			d, err := engine.Peek(t.Context(), rule.For(key, 0))
			return d.Remaining, err
		}
		if _, err := engine.Take(t.Context(), many.For(keys[0], 0), one.For(keys[1], 1), many.For(keys[2], 0)); err != nil {
			t.Fatal(err)
		}
		last := cluster.Nodes[2]
		if how == "hangs" {
			last.Stop()
		} else {
			last.Kill()
		}
		fails := func(what string, ask func(context.Context) error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := ask(ctx); weir.WasCounted(err) == weir.CountedYes || err == nil {
				t.Errorf("a node %s: %s: got %v, want an error that does not say that all was counted", how, what, err)
			}
		}
		for range 3 {
			fails("a lane between refuses", func(ctx context.Context) error {
				_, err := engine.Take(ctx, many.For(keys[0], 10), one.For(keys[1], 1), many.For(keys[2], 1))
				return err
			})
			fails("all admit", func(ctx context.Context) error {
				_, err := engine.Take(ctx, many.For(keys[0], 10), many.For(keys[1], 7), many.For(keys[2], 1))
				return err
			})
			fails("slots", func(ctx context.Context) error {
				_, err := engine.Reserve(ctx, slots.For(keys[0], 1), many.For(keys[2], 1))
				return err
			})
			fails("up to", func(ctx context.Context) error {
				_, _, err := weir.TakeUpTo(ctx, engine, 5, many.For(keys[0], 2), many.For(keys[2], 1))
				return err
			})
		}
		if how == "hangs" {
			last.Cont()
		} else {
			last.Restart()
		}
		eventually(t, "nothing stays taken after a node "+how, func() error {
			first, err1 := left(many, keys[0])
			second, err2 := left(many, keys[1])
			third, err3 := left(many, keys[2])
			free, err4 := left(slots, keys[0])
			if err := cmp.Or(err1, err2, err3, err4); err != nil {
				return err
			}
			if first != 100 || second != 100 || third != 100 || free != 5 {
				return fmt.Errorf("%d, %d and %d of 100 units and %d of 5 slots are left; %+v", first, second, third, free, engine.Stats())
			}
			return nil
		})
		eventually(t, "no undo is left", func() error {
			if s := engine.Stats(); s.Undoing != 0 || s.Abandoned != 0 {
				return fmt.Errorf("%+v", s)
			}
			return nil
		})
	}
}

// A part may be sent before its caller gives up, and reach the server after the undo. The undo then wins.
func TestATakeThatComesAfterItsUndoIsRefused(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	for _, limit := range everyLimit(10) {
		rule, err := weir.NewRule(limit.String(), limit)
		if err != nil {
			t.Fatal(err)
		}
		parts, _, err := engine.parts(nil, []weir.Request{rule.For("k", 4)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		take := wire.Decision{Op: wire.OpTake, Parts: parts, Identity: engine.keys.Identity(parts[0].Lane, "", newIdentity())}
		for range 2 {
			undo := calls.NewSubmission(take.UndoOf(1))
			if err := engine.calls.Ask(t.Context(), undo); err != nil || undo.Decisions[0].Err != nil {
				t.Fatalf("%s: undo of an unknown take: %v, %v", limit, err, undo.Decisions[0].Err)
			}
		}
		_, err = engine.askLane(t.Context(), take, parts)
		if failed, ok := errors.AsType[*fault.Error](err); !ok || failed.Reason != fault.Undone || failed.Counted != weir.CountedNo {
			t.Errorf("%s: the take that comes after its undo: %v, want it refused as undone", limit, err)
		}
		if d, err := engine.Peek(t.Context(), rule.For("k", 0)); err != nil || d.Remaining != 10 {
			t.Errorf("%s: then %d of 10 units remain (%v)", limit, d.Remaining, err)
		}
	}
}

// An undo by identity brings back what was taken, once, however often it is sent.
func TestAnUndoByIdentityHappensOnce(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	for _, limit := range everyLimit(10) {
		if _, leaky := limit.(weir.LeakyBucket); leaky {
			continue // stands alone, so it is never taken across lanes
		}
		rule, err := weir.NewRule(limit.String(), limit)
		if err != nil {
			t.Fatal(err)
		}
		parts, _, err := engine.parts(nil, []weir.Request{rule.For("k", 4)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		before, err := engine.Take(t.Context(), rule.For("k", 5))
		if err != nil || !before.Allowed {
			t.Fatalf("%s: Take: %+v, %v", limit, before, err)
		}
		ask := wire.Decision{Op: wire.OpTake, Identity: engine.keys.Identity(parts[0].Lane, "", newIdentity())}
		taken, err := engine.askLane(t.Context(), ask, parts)
		if err != nil || !taken.Admitted {
			t.Fatalf("%s: take with an identity: admitted %t, %v", limit, taken.Admitted, err)
		}
		for range 3 {
			undo := calls.NewSubmission(taken.UndoOf(1))
			if err := engine.calls.Ask(t.Context(), undo); err != nil || undo.Decisions[0].Err != nil {
				t.Fatalf("%s: undo: %v, %v", limit, err, undo.Decisions[0].Err)
			}
		}
		if d, err := engine.Peek(t.Context(), rule.For("k", 0)); err != nil || d.Remaining < 5-1 || d.Remaining > 5 {
			t.Errorf("%s: after takes of 5 and 4 and three undos of the latter %d units remain (%v), want 5", limit, d.Remaining, err)
		}
	}
}
