package redislimit_test

import (
	"context"
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

// The master dies while callers of two processes wait for a slot. They wait on at the new master, which has the slot and
// hears of the callers within a heartbeat, and hear its signals. No caller hears of it. The engine repeats a release that the
// failover has answered with an error.
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
	awaitTickets(t, sentinel.Master, 2*each)
	sentinel.Master.Kill()
	sentinel.AwaitFailover()
	now := sentinel.Now()
	eventually(t, "all callers are in line at the new master, whose signals both processes hear", func() string {
		tickets, probes := ticketsIn(t, now), commandCalls(t, now, "publish")
		if tickets != 2*each || probes < 2 {
			return fmt.Sprintf("%d tickets, %d probes", tickets, probes)
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
	awaitTickets(t, now, 0)
}

// In a cluster that denies publishing, or hearing, callers go in order of arrival.
func TestCallersOfAClusterWaitWithoutSignals(t *testing.T) {
	t.Parallel()
	for name, rights := range map[string]string{"publishing is denied": "-publish -spublish", "hearing is denied": "-subscribe -ssubscribe"} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			cluster := redistest.StartCluster(t)
			for _, node := range cluster.Nodes {
				node.Do(append(strings.Fields("ACL SETUSER mute on >secret ~* &* +@all"), strings.Fields(rights)...)...)
			}
			url := "redis-cluster://mute:secret@" + strings.Join(cluster.Addrs(), ",")
			slots := slotsOfWorkers(t)
			var queues []*pace.Queue
			for range 2 {
				queues = append(queues, openQueue(t, url))
			}
			held, err := queues[0].Acquire(t.Context(), slots.For("vendor", 1))
			if err != nil {
				t.Fatal(err)
			}
			order := inClusterTurn(t, cluster, 6, queues, slots)
			if err := held.Done(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := order(); fmt.Sprint(got) != "[0 1 2 3 4 5]" {
				t.Errorf("callers went in the order %v", got)
			}
		})
	}
}
