package redislimit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/pace"
)

// Callers of flows share one place of their process in line.
func TestFlowsHaveOnePlaceInLine(t *testing.T) {
	server := redistest.Start(t)
	queue, _ := queueOn(t, server)
	other, _ := queueOn(t, server)
	slots := newRule(t, "slots", weir.Concurrency{Slots: 1, Lease: time.Hour})
	held, err := queue.Acquire(t.Context(), slots.For("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	went := make(chan string, 3)
	var callers sync.WaitGroup
	begin := func(name string, tickets, waiting int, acquire func(context.Context, ...weir.Request) (*pace.Acquired, error)) {
		callers.Go(func() {
			a, err := acquire(context.Background(), slots.For("k", 1))
			went <- name
			if err != nil || a.Done(context.Background()) != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		eventually(t, name+" waits", func() string {
			if n, w := ticketsIn(t, server), queue.Waiting()+other.Waiting(); n != tickets || w != waiting {
				return fmt.Sprintf("%d tickets and %d callers", n, w)
			}
			return ""
		})
		time.Sleep(25 * time.Millisecond) // callers whose arrivals differ by less than 20 ms are of one age
	}
	for i, name := range []string{"first", "last"} {
		flow, err := queue.InFlow(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		begin(name, i+1, 2*i+1, flow.Acquire)
		if i == 0 {
			begin("other", 2, 2, other.Acquire)
		}
	}
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "other", "last"} {
		if got := <-went; got != want {
			t.Errorf("%s went, want %s", got, want)
		}
	}
	callers.Wait()
	awaitTickets(t, server, 0)
}
