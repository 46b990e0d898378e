package redislimit

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// A decision on several keys waits until all of them have moved. Decisions on one key in the same call do not wait
// for it.
func TestADecisionOnTheMoveHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	engine := openFor(t, "redis-cluster://"+cluster.Nodes[0].Addr, Options{Lanes: 1})
	slot := cluster.Slot(engine.keys.Name(0, "", ""))
	rule, err := weir.ParseRule("r=fixed window 1000000/300d")
	if err != nil {
		t.Fatal(err)
	}
	var several []weir.Request
	for i := range 6 {
		several = append(several, rule.For(fmt.Sprint("k", i), 1))
	}
	if _, err := engine.Take(t.Context(), several...); err != nil {
		t.Fatal(err)
	}
	move := cluster.BeginMove(slot, other(cluster, slot))
	move.Keys(3)
	overtook := 0
	for range 10 {
		failed := make(chan error, 1)
		before := engine.Stats().Calls
		go func() {
			_, err := engine.Take(t.Context(), several...)
			failed <- err
		}()
		for engine.Stats().Calls < before+2 { // it is asked again
			time.Sleep(time.Millisecond)
		}
		if _, err := engine.Take(t.Context(), rule.For("k1", 1)); err != nil {
			t.Errorf("Take of one key: %v", err)
		}
		if len(failed) == 0 {
			overtook++
		}
		if failure, ok := errors.AsType[*Error](<-failed); !ok || failure.Reason != ClusterDown || failure.Counted != weir.CountedNo {
			t.Errorf("Take of six keys of which three have moved: %v, want an uncounted error of the cluster", failure)
		}
	}
	if overtook == 0 {
		t.Error("in none of ten rounds a decision of one key was answered before one of several that waited, want it in most")
	}
}

// A slot moves with its states, so its new master has forgotten nothing. A promoted replica may have.
func TestAServerThatASlotHasMovedToIsNotDenied(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	now := time.Now().UnixNano()
	engine := openFor(t, "redis-cluster://"+cluster.Nodes[0].Addr, Options{Lanes: 1, DenyNewServer: true, Clock: func() int64 { return now }})
	slot := cluster.Slot(engine.keys.Name(0, "", ""))
	rule, err := weir.ParseRule("r=token bucket 1000/h burst 10")
	if err != nil {
		t.Fatal(err)
	}
	take := func(when string, allowed bool, remaining int64) {
		t.Helper()
		d, err := engine.Take(t.Context(), rule.For("k", 1))
		for began := time.Now(); err != nil && time.Since(began) < patience; { // the client looks for the slot
			time.Sleep(10 * time.Millisecond)
			d, err = engine.Take(t.Context(), rule.For("k", 1))
		}
		if err != nil || d.Allowed != allowed || d.Remaining != remaining {
			t.Errorf("%s: %+v and %v, want allowed %t and %d remaining", when, d, err, allowed, remaining)
		}
	}
	take("at first", false, 0)
	now += time.Hour.Nanoseconds()
	take("an hour later", true, 9)
	to := other(cluster, slot)
	cluster.BeginMove(slot, to).Finish()
	take("when the slot has moved", true, 8)
	cluster.AwaitHealth()
	waitForReplicas(t, cluster, to)
	to.Kill()
	cluster.AwaitFailover(to)
	take("when a replica has taken over", false, 0)
}

// waitForReplicas returns when the replicas have everything that the master has written.
func waitForReplicas(t *testing.T, cluster *redistest.Cluster, master *redistest.Server) {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(5 * time.Millisecond) {
		offset := master.Info("master_repl_offset")
		for _, node := range cluster.Nodes {
			if node.Info("role") == "slave" && node.Info("master_port") == fmt.Sprint(master.Port) && node.Info("slave_repl_offset") == offset {
				return
			}
		}
	}
	t.Fatal("no replica has caught up")
}
