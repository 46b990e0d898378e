package drivertest

import (
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/sqllimit"
)

// Callers of two processes wait for slots, and for a rate, and all go soon after these are free.
func TestCallersOfTwoProcessesGoSoonAfterARelease(t *testing.T) {
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
			for range 2 {
				q, err := pace.NewQueue(openEngine(t, db, d.dialect, sqllimit.Options{Table: table}), pace.QueueOptions{})
				if err != nil {
					t.Fatal(err)
				}
				queues = append(queues, q)
			}
			allGo(t, queues, mustRule(t, "slots", weir.Concurrency{Slots: 1, Lease: time.Minute}).For("k", 1))
			allGo(t, queues, mustRule(t, "rate", weir.TokenBucket{Rate: weir.PerSecond(8), Burst: 1}).For("k", 1))
		})
	}
}

// allGo has callers of the queues wait while one holds what they want.
func allGo(t *testing.T, queues []*pace.Queue, q weir.Request) {
	t.Helper()
	held, err := queues[0].Acquire(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			a, err := queues[i%2].Acquire(t.Context(), q)
			if err == nil {
				err = a.Done(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := held.Done(t.Context()); err != nil {
		t.Error(err)
	}
	released := time.Now()
	all.Wait()
	if took := time.Since(released); took > 15*time.Second {
		t.Errorf("%s: 8 callers of two processes went within %v of the release, want a second for each at most", q.Rule.Name(), took)
	}
}
