package redislimit

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
)

// While a slot moves, some of its keys are on one node and some on another, and neither node decides a batch of both.
// Each unit is still counted exactly once.
func TestABatchOfASlotThatMovesIsDecidedKeyByKey(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	for _, options := range []Options{{Lanes: 1}, {Lanes: 1, DenyNewServer: true}} {
		options.Prefix = fmt.Sprint("deny", options.DenyNewServer)
		engine := openFor(t, "redis-cluster://"+cluster.Nodes[0].Addr, options)
		slot := cluster.Slot(engine.keys.Name(0, "", ""))
		const keys, rounds = 40, 10
		rule, err := weir.NewRule("moving", weir.Concurrency{Slots: rounds * 2 / 3, Lease: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		requests, results := make([]weir.Request, keys), make([]weir.Result, keys)
		for i := range requests {
			requests[i] = rule.For(fmt.Sprint("key ", i), 1)
		}
		admitted := make([]int, keys)
		round := func() {
			t.Helper()
			if err := engine.Each(t.Context(), enginekit.Calls(weir.OpTake, requests...), results); err != nil {
				t.Fatal(err)
			}
			for i, r := range results {
				if r.Decision.Allowed {
					admitted[i]++
				}
				if err := movingFailure(r.Err, options); err != nil {
					t.Errorf("key %d while its slot moves: %v, want it decided", i, err)
				}
			}
		}
		round()
		move := cluster.BeginMove(slot, other(cluster, slot))
		for range rounds - 2 {
			move.Keys(5)
			round()
		}
		move.Finish()
		round()
		for i, n := range admitted {
			d, err := engine.Peek(t.Context(), rule.For(fmt.Sprint("key ", i), 0))
			if err != nil || n > rounds*2/3 || d.Remaining != int64(rounds*2/3-n) || !options.DenyNewServer && n != rounds*2/3 {
				t.Errorf("key %d: %d of %d admitted in %d rounds and %d remaining (%v)", i, n, rounds*2/3, rounds, d.Remaining, err)
			}
		}
	}
}

// movingFailure returns err, unless keys of one call may be on two nodes for longer than the engine repeats a
// decision.
func movingFailure(err error, options Options) error {
	failed, ok := errors.AsType[*Error](err)
	if ok && options.DenyNewServer && failed.Reason == ClusterDown && failed.Counted == weir.CountedNo {
		return nil
	}
	return err
}

// other returns a master that does not have the slot.
func other(cluster *redistest.Cluster, slot int) *redistest.Server {
	for _, node := range cluster.Nodes[:2] {
		if node != cluster.Master(slot) {
			return node
		}
	}
	return nil
}

// A decision on several keys waits until the last of them has arrived.
func TestADecisionOfSeveralKeysWaitsUntilTheyHaveMoved(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	engine := openFor(t, "redis-cluster://"+cluster.Nodes[0].Addr, Options{Lanes: 1})
	slot := cluster.Slot(engine.keys.Name(0, "", ""))
	rule, err := weir.ParseRule("two=fixed window 100/300d and rate gate 100/300d")
	if err != nil {
		t.Fatal(err)
	}
	if d, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil || !d.Allowed {
		t.Fatalf("Take: %+v, %v", d, err)
	}
	move := cluster.BeginMove(slot, other(cluster, slot))
	move.Keys(1) // one of the two
	before := engine.Stats().Calls
	taken := make(chan error, 1)
	go func() {
		_, err := engine.Take(t.Context(), rule.For("k", 1))
		taken <- err
	}()
	for engine.Stats().Calls < before+3 { // it was refused, and is asked again
		select {
		case err := <-taken:
			t.Fatalf("Take while one of two keys has moved: %v, want it asked again", err)
		case <-time.After(time.Millisecond):
		}
	}
	move.Keys(1)
	err = <-taken
	want := int64(98)
	if failed, ok := errors.AsType[*Error](err); ok && failed.Reason == ClusterDown && failed.Counted == weir.CountedNo {
		want = 99 // the other key came too late
	} else if err != nil {
		t.Errorf("Take of two keys on the move: %v", err)
	}
	move.Finish()
	if d, err := engine.Peek(t.Context(), rule.For("k", 0)); err != nil || d.Remaining != want {
		t.Errorf("after it: %+v and %v, want %d remaining", d, err, want)
	}
}

// Releases, peeks and resets can be made key by key with the same result, so they do not wait until the slot has moved.
func TestWhatCanBeDecidedKeyByKeyIsDecidedWhileASlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	engine := openFor(t, "redis-cluster://"+cluster.Nodes[0].Addr, Options{Lanes: 1})
	slot := cluster.Slot(engine.keys.Name(0, "", ""))
	two, slots := mustRule(t, "two=token bucket 100/h and rate gate 100/h"), mustRule(t, "s=concurrency 9 lease 1h")
	reserve := func(requests ...weir.Request) *weir.Reservation {
		t.Helper()
		r, err := engine.Reserve(t.Context(), requests...)
		if err := allowed(r.Decision, err); err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, keys := range []int{0, 1, 100} { // of five that have moved
		held, several := reserve(slots.For("k", 2)), reserve(slots.For("k", 1), slots.For("other", 1))
		for range 2 {
			if err := allowed(engine.Take(t.Context(), two.For("k", 1))); err != nil {
				t.Fatal(err)
			}
		}
		move := cluster.BeginMove(slot, other(cluster, slot))
		move.Keys(keys)
		if d, err := engine.Peek(t.Context(), two.For("k", 1)); err != nil || d.Remaining != 98 {
			t.Errorf("%d keys have moved: Peek: %+v, %v, want 98 remaining", keys, d, err)
		}
		if d, err := engine.Peek(t.Context(), two.For("new", 1)); err != nil || d.Remaining != 100 {
			t.Errorf("%d keys have moved: Peek of a new key: %+v, %v, want 100 remaining", keys, d, err)
		}
		for _, r := range []*weir.Reservation{held, several} {
			if err := r.Done(t.Context()); err != nil {
				t.Errorf("%d keys have moved: Done: %v", keys, err)
			}
		}
		if err := engine.Reset(t.Context(), two.For("k", 1), two.For("new", 1)); err != nil {
			t.Errorf("%d keys have moved: Reset: %v", keys, err)
		}
		move.Finish()
		eventually(t, "the slots are free and the limits full", func() error {
			d, err := engine.Peek(t.Context(), slots.For("k", 9), slots.For("other", 9), two.For("k", 100))
			return allowed(d, err)
		})
	}
}
