package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
)

// openQueue returns a queue over an engine of its own.
func openQueue(t *testing.T, url string) *pace.Queue {
	t.Helper()
	engine, err := redislimit.Open(url, redislimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	queue, err := pace.NewQueue(engine, pace.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return queue
}

// The master dies while callers of two processes wait for a slot. They wait on at the new master, which has the slot,
// and hear its signals. No caller hears of it. A release that the failover has answered with an error is repeated.
func TestCallersWaitThroughAFailover(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t)
	url := "redis-sentinel://" + strings.Join(sentinel.Addrs(), ",") + "/" + redistest.MasterSet
	slots := newRule(t, "slots", weir.Concurrency{Slots: 1, Lease: time.Minute})
	first, second := openQueue(t, url), openQueue(t, url)
	held, err := first.Acquire(t.Context(), slots.For("vendor", 1))
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	var holding, failed atomic.Int64
	holding.Store(1)
	const each = 5
	for _, queue := range []*pace.Queue{first, second} {
		for range each {
			callers.Go(func() {
				a, err := queue.Acquire(t.Context(), slots.For("vendor", 1))
				if err != nil {
					t.Error(err)
					return
				}
				if n := holding.Add(1); n != 1 {
					t.Errorf("%d hold the slot at once", n)
				}
				holding.Add(-1)
				if err := a.Done(context.Background()); err != nil {
					failed.Add(1)
				}
			})
		}
	}
	eventually(t, "all callers wait", func() string {
		if n := first.Waiting() + second.Waiting(); n != 2*each {
			return fmt.Sprintf("%d do", n)
		}
		return ""
	})
	sentinel.Master.Kill()
	sentinel.AwaitFailover()
	now := sentinel.Now()
	eventually(t, "both processes hear the signals of the new master", func() string {
		if probes := commandCalls(t, now, "publish"); probes < 2 {
			return fmt.Sprintf("%d probes", probes)
		}
		return ""
	})
	probes := commandCalls(t, now, "publish")
	holding.Add(-1)
	if err := held.Done(t.Context()); err != nil {
		failed.Add(1)
	}
	callers.Wait()
	t.Logf("%d callers went; %d releases failed; %d signals of the new master", 2*each, failed.Load(), commandCalls(t, now, "publish")-probes)
	if signals := commandCalls(t, now, "publish") - probes; signals < each {
		t.Errorf("the new master has sent %d signals for %d releases", signals, 2*each+1)
	}
}

// clusterCallers returns after callers of two queues, which wait while the slot is held, have held it in turn.
func clusterCallers(t *testing.T, queues []*pace.Queue, meanwhile func()) {
	t.Helper()
	slots := slotsOfWorkers(t)
	held, err := queues[0].Acquire(t.Context(), slots.For("vendor", 1))
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for i := range 6 {
		callers.Go(func() {
			if a, err := queues[i%2].Acquire(t.Context(), slots.For("vendor", 1)); err != nil {
				t.Error(err)
			} else if err := a.Done(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	meanwhile()
	start := time.Now()
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	callers.Wait()
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("6 callers of two processes took %v after the slot was free", took)
	}
}

// In a cluster that denies publishing, or hearing, callers go all the same.
func TestCallersOfAClusterWaitWithoutSignals(t *testing.T) {
	t.Parallel()
	for name, rights := range map[string]string{"publishing is denied": "-publish -spublish", "hearing is denied": "-subscribe -ssubscribe"} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			cluster := redistest.StartCluster(t)
			for _, node := range cluster.Nodes {
				node.Do(append(strings.Fields("ACL SETUSER mute on >secret ~* &* +@all"), strings.Fields(rights)...)...)
			}
			url := "redis-cluster://mute:secret@" + strings.Join(cluster.Addrs(), ",")
			clusterCallers(t, []*pace.Queue{openQueue(t, url), openQueue(t, url)}, func() {})
		})
	}
}

// In a cluster a signal goes to the node of the slot alone.
func TestSignalsOfAClusterReachOneShard(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	published := func(name string) (n int) {
		for _, node := range cluster.Nodes {
			n += commandCalls(t, node, name)
		}
		return n
	}
	url := "redis-cluster://" + strings.Join(cluster.Addrs(), ",")
	clusterCallers(t, []*pace.Queue{openQueue(t, url), openQueue(t, url)}, func() {
		eventually(t, "both engines hear signals", func() string {
			if n := published("spublish"); n < 2 {
				return fmt.Sprint(n, " probes")
			}
			return ""
		})
	})
	if n := published("spublish"); n < 4 {
		t.Errorf("%d signals, want more than the probes of both engines", n)
	}
	if n := published("publish"); n > 0 {
		t.Errorf("%d signals went to all nodes", n)
	}
}

// A caller that is refused at once, because its units would come after its deadline, keeps no unit from another process.
func TestACallerThatIsRefusedAtOnceDelaysNoOtherProcess(t *testing.T) {
	t.Parallel()
	url := "redis://" + redistest.Start(t).Addr
	slots := slotsOfWorkers(t)
	for name, beside := range map[string][]weir.Request{"booked": nil, "asked": {slots.For("vendor", 1)}} {
		tokens := newRule(t, name, weir.TokenBucket{Rate: weir.PerMinute(300), Burst: 60})
		first, second := openQueue(t, url), openQueue(t, url)
		if _, err := first.Wait(t.Context(), tokens.For("vendor", 60)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := first.Acquire(ctx, append(beside, tokens.For("vendor", 50))...)
		cancel()
		if !errors.As(err, new(*weir.WaitError)) {
			t.Errorf("%s: 50 units within a second: %v, want a WaitError", name, err)
		}
		start := time.Now()
		a, err := second.Acquire(t.Context(), append(beside, tokens.For("vendor", 1))...)
		if err != nil || time.Since(start) > 5*time.Second { // the refused caller's own instant is 8.9 s away
			t.Errorf("%s: the caller of another process went after %v (%v), want the 200 ms of a unit and little more", name, time.Since(start), err)
		}
		if err := a.Done(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func queueOn(t *testing.T, server *redistest.Server) (*pace.Queue, *redislimit.Engine) {
	t.Helper()
	engine := newEngine(t, dial(t, server), redislimit.Options{})
	queue, err := pace.NewQueue(engine, pace.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return queue, engine
}

func decisions(engines ...*redislimit.Engine) (n uint64) {
	for _, e := range engines {
		n += e.Stats().Decisions
	}
	return n
}

// commandCalls returns how often the server has run a command.
func commandCalls(t *testing.T, server *redistest.Server, name string) (n int) {
	t.Helper()
	stats, _ := server.Do("INFO", "commandstats").(string)
	for line := range strings.Lines(stats) {
		if counts, found := strings.CutPrefix(line, "cmdstat_"+name+":calls="); found {
			_, _ = fmt.Sscan(strings.Split(counts, ",")[0], &n)
		}
	}
	return n
}
