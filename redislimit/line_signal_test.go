package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
)

// Subscriptions are cut, so that signals are lost, just before a slot comes back. The callers go soon, and in order.
func TestALostSignalIsMadeUpFor(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	queue, _ := queueOn(t, server)
	other, _ := queueOn(t, server)
	for range 5 {
		held, err := queue.Acquire(t.Context(), slotsOfWorkers(t).For("vendor", 1))
		if err != nil {
			t.Fatal(err)
		}
		got := inTurn(t, server, 3, func(int) (*pace.Acquired, error) {
			return other.Acquire(t.Context(), slotsOfWorkers(t).For("vendor", 1))
		})
		server.Do("CLIENT", "KILL", "TYPE", "pubsub")
		server.FlushScripts()
		began := time.Now()
		err = held.Done(t.Context()) // perhaps on the same connection, and lost with it; the engine then repeats the release
		if failed, is := errors.AsType[*redislimit.Error](err); err != nil && (!is || failed.Reason != redislimit.Lost) {
			t.Fatal(err)
		}
		if order := got(); len(order) != 3 || !slices.IsSorted(order) {
			t.Errorf("callers went in the order %v", order)
		}
		if took := time.Since(began); took > 3*time.Second { // some 0.1 s on an idle machine; a release is repeated after a second
			t.Errorf("three callers went after %v", took)
		}
	}
}

// oneMethod is a client that cannot subscribe.
type oneMethod struct{ client rueidis.Client }

func (c oneMethod) Send(ctx context.Context, command ...string) (string, error) {
	return c.client.Do(ctx, c.client.B().Arbitrary(command...).Build()).ToString()
}

// Callers of a user that may neither publish nor subscribe, and of a client that cannot, go in order of arrival.
func TestCallersWaitForSlotsWithoutSignals(t *testing.T) {
	for name, engineOf := range map[string]func(server *redistest.Server) *redislimit.Engine{
		"an ACL": func(server *redistest.Server) *redislimit.Engine {
			server.Do("ACL", "SETUSER", "mute", "on", ">secret", "~*", "resetchannels", "+@all", "-@pubsub")
			engine, err := redislimit.Open("redis://mute:secret@"+server.Addr, redislimit.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(engine.Close)
			return engine
		},
		"a client": func(server *redistest.Server) *redislimit.Engine {
			engine, err := redislimit.NewWith(oneMethod{dial(t, server)}, redislimit.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return engine
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			for more := 5; ; more-- { // on a busy machine a process may be passed over
				lateness := redislimit.WatchTimers()
				order := orderWithoutSignals(t, engineOf)
				late := lateness() > 20*time.Millisecond
				if slices.IsSorted(order) {
					return
				}
				if !late || more == 0 {
					t.Fatalf("callers went in the order %v on a machine that is busy: %v", order, late)
				}
			}
		})
	}
}

// orderWithoutSignals returns the order in which callers of two processes get a slot.
func orderWithoutSignals(t *testing.T, engineOf func(server *redistest.Server) *redislimit.Engine) []int {
	server := redistest.Start(t)
	var queues []*pace.Queue
	for range 2 {
		queue, err := pace.NewQueue(engineOf(server), pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		queues = append(queues, queue)
	}
	slots := slotsOfWorkers(t)
	held, err := queues[0].Acquire(t.Context(), slots.For("vendor", 1))
	if err != nil {
		t.Fatal(err)
	}
	got := inTurn(t, server, 6, func(i int) (*pace.Acquired, error) {
		return queues[i%2].Acquire(t.Context(), slots.For("vendor", 1))
	})
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	order := got()
	if n := commandCalls(t, server, "publish"); n > 0 {
		t.Errorf("%d signals were published", n)
	}
	return order
}

// In a cluster a signal goes to the node of the slot alone.
func TestSignalsOfAClusterReachOneShard(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	slots := slotsOfWorkers(t)
	var queues []*pace.Queue
	for range 2 {
		queue, err := pace.NewQueue(newEngine(t, dialCluster(t, cluster), redislimit.Options{}), pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		queues = append(queues, queue)
	}
	held, err := queues[0].Acquire(t.Context(), slots.For("vendor", 1))
	if err != nil {
		t.Fatal(err)
	}
	order := inClusterTurn(t, cluster, 6, queues, slots)
	published := func(name string) (n int) {
		for _, node := range cluster.Nodes {
			n += commandCalls(t, node, name)
		}
		return n
	}
	eventually(t, "both engines hear signals", func() string {
		if n := published("spublish"); n < 2 {
			return fmt.Sprint(n, " probes")
		}
		return ""
	})
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := order(); len(got) != 6 || !slices.IsSorted(got) {
		t.Errorf("callers went in the order %v", got)
	}
	if n := published("spublish"); n < 4 {
		t.Errorf("%d signals, want more than the probes of both engines", n)
	}
	if n := published("publish"); n > 0 {
		t.Errorf("%d signals went to all nodes", n)
	}
}

// inClusterTurn starts n callers, each when the line has the one before it, and returns the order in which they got the
// slot.
func inClusterTurn(t *testing.T, cluster *redistest.Cluster, n int, queues []*pace.Queue, slots *weir.Rule) func() []int {
	t.Helper()
	var mu sync.Mutex
	var order []int
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			a, err := queues[i%len(queues)].Acquire(t.Context(), slots.For("vendor", 1))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			_ = a.Done(context.Background())
		})
		eventually(t, "the caller is in line", func() string {
			tickets := 0
			for _, master := range cluster.Nodes[:len(cluster.Nodes)/2] {
				tickets += ticketsIn(t, master)
			}
			if tickets != i+1 {
				return fmt.Sprintf("%d tickets, want %d", tickets, i+1)
			}
			return ""
		})
		time.Sleep(25 * time.Millisecond) // callers whose arrivals differ by less than 20 ms are of one age
	}
	return func() []int { callers.Wait(); return order }
}
