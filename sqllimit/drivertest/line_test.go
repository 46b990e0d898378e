package drivertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/sqllimit"
)

// Callers of two processes wait for slots, and for a rate, in order of arrival: those of one process never go before older ones
// of the other.
func TestCallersOfTwoProcessesGoInOrderOfArrival(t *testing.T) {
	for _, d := range databases {
		switch d.name {
		case "pgx", "pgx through pgbouncer", "mariadb", "modernc":
		default:
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			db, table := d.open(t), newTable()
			var queues []*pace.Queue
			other := openEngine(t, db, d.dialect, sqllimit.Options{Table: table})
			for range 2 {
				q, err := pace.NewQueue(openEngine(t, db, d.dialect, sqllimit.Options{Table: table}), pace.QueueOptions{})
				if err != nil {
					t.Fatal(err)
				}
				queues = append(queues, q)
			}
			inOrder(t, other, queues, mustRule(t, "slots", weir.Concurrency{Slots: 1, Lease: time.Minute}).For("k", 1))
			inOrder(t, other, queues, mustRule(t, "rate", weir.TokenBucket{Rate: weir.PerSecond(8), Burst: 1}).For("k", 1))
		})
	}
}

// slowest asks an engine until end is closed, and returns how long the slowest answer took, which is how far the processes
// may be off the clock of the server.
func slowest(e weir.Engine, q weir.Request, end chan bool) (longest time.Duration) {
	for {
		select {
		case <-end:
			return longest
		default:
			began := time.Now()
			time.Sleep(5 * time.Millisecond)
			_, _ = e.Peek(context.Background(), q)
			longest = max(longest, time.Since(began)-5*time.Millisecond)
		}
	}
}

// inOrder has callers come to the queues by turns. None may go clearly before one that came clearly earlier.
func inOrder(t *testing.T, other weir.Engine, queues []*pace.Queue, q weir.Request) {
	t.Helper()
	end, took := make(chan bool), make(chan time.Duration, 1)
	go func() { took <- slowest(other, q.Rule.For("other", 1), end) }()
	const callers, apart, clearly = 8, 80 * time.Millisecond, 60 * time.Millisecond
	held, err := queues[0].Acquire(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var came, went [callers]time.Time
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			came[i] = time.Now()
			a, err := queues[i%2].Acquire(t.Context(), q)
			went[i] = time.Now()
			if err == nil {
				err = a.Done(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
		time.Sleep(apart)
	}
	if err := held.Done(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	close(end)
	off := <-took
	for i := range callers {
		for j := range callers {
			if came[j].Sub(came[i]) > clearly+off && went[i].Sub(went[j]) > clearly/2+off {
				t.Errorf("%s: caller %d came %v after caller %d and went %v before it; answers took up to %v", q.Rule.Name(), j, came[j].Sub(came[i]), i, went[i].Sub(went[j]), off)
			}
		}
	}
}
