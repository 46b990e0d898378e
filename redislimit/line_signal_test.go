package redislimit_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
)

// A signal that is lost delays the caller by about a second.
func TestALostSignalIsMadeUpFor(t *testing.T) {
	server := redistest.Start(t)
	queue, _ := queueOn(t, server)
	other, engine := queueOn(t, server)
	held, err := queue.Acquire(t.Context(), slotsOfWorkers(t).For("vendor", 1))
	if err != nil {
		t.Fatal(err)
	}
	got := inTurn(t, server, 3, func(int) (*pace.Acquired, error) {
		return other.Acquire(t.Context(), slotsOfWorkers(t).For("vendor", 1))
	})
	asked := decisions(engine)
	eventually(t, "the callers hear signals, and ask once a second", func() string {
		if decisions(engine) < asked+2 {
			return "not yet"
		}
		return ""
	})
	server.Do("CLIENT", "KILL", "TYPE", "pubsub")
	server.FlushScripts()
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	if order := got(); !slices.IsSorted(order) {
		t.Errorf("callers went in the order %v", order)
	}
}

// oneMethod is a client that cannot subscribe.
type oneMethod struct{ client rueidis.Client }

func (c oneMethod) Send(ctx context.Context, command ...string) (string, error) {
	return c.client.Do(ctx, c.client.B().Arbitrary(command...).Build()).ToString()
}

// A user that may neither publish nor subscribe, and a client that cannot, ask with growing pauses.
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
			if order := got(); !slices.IsSorted(order) {
				t.Errorf("callers went in the order %v", order)
			}
			if n := commandCalls(t, server, "publish"); n > 0 {
				t.Errorf("%d signals were published", n)
			}
		})
	}
}

// In a cluster a signal goes to the node of the slot alone.
func TestSignalsOfAClusterReachOneShard(t *testing.T) {
	cluster := redistest.StartCluster(t)
	slots := slotsOfWorkers(t)
	var queues []*pace.Queue
	var engines []*redislimit.Engine
	for range 2 {
		engine := newEngine(t, dialCluster(t, cluster), redislimit.Options{})
		queue, err := pace.NewQueue(engine, pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		queues, engines = append(queues, queue), append(engines, engine)
	}
	held, err := queues[0].Acquire(t.Context(), slots.For("vendor", 1))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []int
	var callers sync.WaitGroup
	const n = 6
	for i := range n {
		asked := decisions(engines[i%2])
		callers.Go(func() {
			a, err := queues[i%2].Acquire(t.Context(), slots.For("vendor", 1))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			_ = a.Done(t.Context())
		})
		eventually(t, "the caller is in line", func() string {
			if queues[i%2].Waiting() != i/2+1 || decisions(engines[i%2]) == asked {
				return "not yet"
			}
			return ""
		})
	}
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
	callers.Wait()
	if !slices.IsSorted(order) {
		t.Errorf("callers went in the order %v", order)
	}
	if n := published("spublish"); n < 4 {
		t.Errorf("%d signals, want more than the probes of both engines", n)
	}
	if n := published("publish"); n > 0 {
		t.Errorf("%d signals went to all nodes", n)
	}
}
