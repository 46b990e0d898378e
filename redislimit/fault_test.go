package redislimit

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
)

// These tests break real servers while traffic continues. Their bounds are those of docs/reference/redis.md.

func TestFaultARestartWithoutMemoryCostsOneMoreBurst(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	tr := startTraffic(t, openFor(t, "redis://"+server.Addr, Options{}), faultLimit, "alice")
	goOn(500 * time.Millisecond)
	server.Kill()
	goOn(500 * time.Millisecond)
	server.Restart()
	tr.checkRecovery(t)
	goOn(500 * time.Millisecond)
	tr.check(t, 1, 1)
	if tr.failed.Load() == 0 {
		t.Error("nothing failed while the server was gone")
	}
}

func TestFaultARestartWithMemoryCostsNothing(t *testing.T) {
	server := redistest.Start(t, "appendonly yes", "appendfsync always")
	tr := startTraffic(t, openFor(t, "redis://"+server.Addr, Options{}), faultLimit, "alice")
	goOn(500 * time.Millisecond)
	server.Kill()
	server.Restart()
	tr.checkRecovery(t)
	goOn(500 * time.Millisecond)
	tr.check(t, 1, 0)
}

func TestFaultAServerThatHangsAdmitsNothingMore(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	tr := startTraffic(t, openFor(t, "redis://"+server.Addr, Options{}), faultLimit, "alice")
	goOn(500 * time.Millisecond)
	server.Stop()
	goOn(3 * time.Second)
	server.Cont()
	tr.checkRecovery(t)
	goOn(500 * time.Millisecond)
	tr.check(t, 1, 0)
	if slowest := time.Duration(tr.slowest.Load()); slowest > tr.within(2*deadline) {
		t.Errorf("a caller waited %v, want about the deadline of %v", slowest, deadline)
	}
}

func TestFaultFlushedScriptsAreSentAgain(t *testing.T) {
	server := redistest.Start(t)
	tr := startPatientTraffic(t, openFor(t, "redis://"+server.Addr, Options{}), faultLimit, "alice", "bob")
	for range 50 {
		tr.awaitDecision(t)
		server.FlushScripts()
	}
	tr.check(t, 2, 0)
	if failed := tr.failed.Load(); failed > 0 {
		t.Errorf("%d failed, want none: the script is sent again", failed)
	}
}

func TestFaultAFailoverOfTheClusterCostsWhatWasNotReplicated(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	engine := openFor(t, "redis-cluster://"+strings.Join(cluster.Addrs(), ","), Options{})
	master := cluster.Master(cluster.Slot(engine.keys.Name(engine.keys.Lane("alice"), "", "alice")))
	tr := startTraffic(t, engine, faultLimit, "alice")
	goOn(500 * time.Millisecond)
	master.Kill()
	cluster.AwaitFailover(master)
	tr.checkRecovery(t)
	goOn(500 * time.Millisecond)
	tr.check(t, 1, 1)
}

func TestFaultAFailoverBySentinelCostsWhatWasNotReplicated(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t)
	engine := openFor(t, "redis-sentinel://"+strings.Join(sentinel.Addrs(), ",")+"/"+redistest.MasterSet, Options{})
	tr := startTraffic(t, engine, faultLimit, "alice")
	goOn(500 * time.Millisecond)
	sentinel.Master.Kill()
	sentinel.AwaitFailover()
	tr.checkRecovery(t)
	goOn(500 * time.Millisecond)
	tr.check(t, 1, 1)
}

// Sentinels that are ordered to fail over promote the replica, and make the old master its replica seconds later. Callers that
// have not heard of the new master are answered by the old one until then.
func TestFaultTwoMastersOfAFailoverAdmitTheRateTwiceAtMost(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t)
	url := "redis-sentinel://" + strings.Join(sentinel.Addrs(), ",") + "/" + redistest.MasterSet
	moved := startTraffic(t, openFor(t, url, Options{}), faultLimit, "alice")
	stayed := startTraffic(t, openFor(t, "redis://"+sentinel.Master.Addr, Options{}), faultLimit, "alice")
	goOn(500 * time.Millisecond)
	sentinel.Sentinels[0].Do("SENTINEL", "FAILOVER", redistest.MasterSet)
	promoted := sentinel.AwaitPromotion()
	sentinel.AwaitFailover()
	moved.checkRecovery(t)
	before := stayed.admitted.Load()
	goOn(time.Second)
	sentinel.Master.Do("REPLICAOF", "127.0.0.1", strconv.Itoa(sentinel.Replica.Port))
	both := time.Since(promoted).Seconds()
	moved.awaitRefusal(t)
	stayed.stop()
	seconds := moved.stop()
	admitted := float64(moved.admitted.Load() + stayed.admitted.Load())
	once := faultBurst + faultRate*seconds
	t.Logf("%.2f s, %.2f s with two masters: %.0f admitted, where one master admits at most %.0f", seconds, both, admitted, once)
	if most := once + faultBurst + faultRate*both; admitted > most {
		t.Errorf("%.0f admitted, want at most %.1f", admitted, most)
	}
	if stayed.admitted.Load() == before {
		t.Error("the old master admitted nothing beside the new one, want this to be the fault of this test")
	}
}

func TestFaultASlotThatMovesCostsNothing(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	engine := openFor(t, "redis-cluster://"+cluster.Nodes[0].Addr, Options{Lanes: 1})
	slot := cluster.Slot(engine.keys.Name(0, "", ""))
	masters := cluster.Nodes[:3]
	tr := startTraffic(t, engine, faultLimit, "alice", "bob", "carol")
	for i := range 6 {
		to := masters[i%3]
		if to == cluster.Master(slot) {
			to = masters[(i+1)%3]
		}
		goOn(100 * time.Millisecond)
		move := cluster.BeginMove(slot, to)
		for move.Keys(1) > 0 {
			goOn(20 * time.Millisecond)
		}
		move.Finish()
		tr.checkRecovery(t)
	}
	tr.check(t, 3, 0)
	if n := tr.homeless.Load(); n > 0 {
		t.Errorf("%d failed because their keys were on two nodes, want each of them asked for where it is", n)
	}
}

func TestFaultAConnectionCutInAReplyAdmitsNothingMore(t *testing.T) {
	server := redistest.Start(t)
	proxy := startProxy(t, server.Addr)
	tr := startTraffic(t, openFor(t, "redis://"+proxy.addr, Options{}), faultLimit, "alice")
	for range 30 {
		tr.awaitDecision(t)
		proxy.cut.Store(true)
		for proxy.cut.Load() {
			goOn(time.Millisecond)
		}
		tr.checkRecovery(t)
	}
	tr.check(t, 1, 0)
	if proxy.cuts.Load() < 20 || tr.counted.Load() == 0 {
		t.Errorf("%d connections were cut and %d errors said that the cost may have been counted, want at least 20 and some", proxy.cuts.Load(), tr.counted.Load())
	}
}

func TestFaultAClockThatJumpsCostsNothing(t *testing.T) {
	server := redistest.Start(t)
	var clock, highest atomic.Int64
	begin := time.Now().UnixNano()
	clock.Store(begin)
	highest.Store(begin)
	engine := openFor(t, "redis://"+server.Addr, Options{Clock: clock.Load})
	tr := startTraffic(t, engine, faultLimit, "alice")
	for i := range 60 {
		step := time.Duration(i%7+1) * 10 * time.Millisecond
		if i%3 == 2 {
			step = -2 * step
		}
		highest.Store(max(highest.Load(), clock.Add(int64(step))))
		goOn(5 * time.Millisecond)
	}
	tr.stop()
	most := faultBurst + faultRate*time.Duration(highest.Load()-begin).Seconds()
	if admitted := tr.admitted.Load(); float64(admitted) > most || admitted < faultBurst {
		t.Errorf("%d admitted, want %d to %.1f: burst and rate up to the highest time", admitted, faultBurst, most)
	}
}

func TestFaultTenThousandKeysThatEndAtOnceDelayNoCaller(t *testing.T) {
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr, Options{})
	another := openFor(t, "redis://"+server.Addr, Options{}) // of another process, so that they do not queue here
	short, err := weir.ParseRule("short=fixed window 1/1s")
	if err != nil {
		t.Fatal(err)
	}
	requests, results := make([]weir.Request, 10_000), make([]weir.Result, 10_000)
	for i := range requests {
		requests[i] = short.For(fmt.Sprint(i), 1)
	}
	tr := startPatientTraffic(t, engine, faultLimit, "alice")
	if err := another.Each(t.Context(), enginekit.Calls(weir.OpTake, requests...), results); err != nil {
		t.Fatal(err)
	}
	goOn(1500 * time.Millisecond) // all of them end within, at the border of the second
	if err := another.Each(t.Context(), enginekit.Calls(weir.OpTake, requests...), results); err != nil {
		t.Fatal(err)
	}
	for i, result := range results {
		if result.Err != nil || !result.Decision.Allowed {
			t.Fatalf("key %d, whose window has ended: %+v, want allowed", i, result)
		}
	}
	tr.check(t, 1, 0)
	if failed := tr.failed.Load(); failed > 0 {
		t.Errorf("%d failed, want none", failed)
	}
}
