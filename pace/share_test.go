package pace_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/waittest"
	"github.com/weirflow/weir/pace"
)

// crowd is processes whose callers acquire or wait for something again and again.
type crowd struct {
	server *waittest.Server
	stop   context.CancelFunc
	all    sync.WaitGroup
	grants []atomic.Int64
}

// newCrowd starts processes of that many callers. work is what a caller does once.
func newCrowd(t *testing.T, s *waittest.Server, callers []int, n func(process int) waittest.Network, work func(ctx context.Context, q *pace.Queue, process int) error) *crowd {
	ctx, stop := context.WithCancel(t.Context())
	c := &crowd{server: s, stop: stop, grants: make([]atomic.Int64, len(callers))}
	for i, of := range callers {
		q := mustQueue(t, s.Connect(n(i)))
		for range of {
			c.all.Go(func() {
				for ctx.Err() == nil {
					if work(ctx, q, i) == nil {
						c.grants[i].Add(1)
					}
				}
			})
		}
	}
	return c
}

// during returns the grants of each process in a time, and the calls.
func (c *crowd) during(length time.Duration) (grants []int64, calls int64) {
	calls = c.server.Calls.Load()
	for i := range c.grants {
		grants = append(grants, -c.grants[i].Load())
	}
	time.Sleep(length)
	for i := range c.grants {
		grants[i] += c.grants[i].Load()
	}
	return grants, c.server.Calls.Load() - calls
}

func (c *crowd) end() {
	c.stop()
	c.all.Wait()
	time.Sleep(time.Second) // until all signals have arrived
}

func sum(all []int64) (n int64) {
	for _, x := range all {
		n += x
	}
	return n
}

// What all processes get of what is possible, how evenly, and with how many calls. Chance alone makes grants differ, and a
// measurement that goes on evens it out: what is uneven after five stretches is no chance.
func TestEqualProcessesShareSlots(t *testing.T) {
	length := 30 * time.Second
	if testing.Short() {
		length = 10 * time.Second
	}
	for _, c := range []struct {
		processes, callers, slots int
		hold                      time.Duration
		least                     float64 // share of what is possible
		calls                     float64 // a grant, at most
		apart                     int64   // the most grants of a process for one of another
	}{
		{4, 10, 8, 40 * time.Millisecond, 0.85, 3, 3},
		{3, 20, 4, 20 * time.Millisecond, 0.85, 3, 5},
		{4, 2, 1, 100 * time.Millisecond, 0.85, 6, 5},
		{4, 2, 1, 2 * time.Millisecond, 0.5, 4, 3},
		{50, 10, 8, 40 * time.Millisecond, 0.85, 20, 15},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := newServer(t)
			slots := rule(t, "slots", "concurrency "+strconv.Itoa(c.slots)+" lease 30s")
			way := waittest.Between(randtest.New(randtest.Seed(t)), 150*time.Microsecond, 500*time.Microsecond)
			crowd := newCrowd(t, server, slices.Repeat([]int{c.callers}, c.processes), func(int) waittest.Network { return waittest.Network{Way: way} },
				func(ctx context.Context, q *pace.Queue, _ int) error {
					a, err := q.Acquire(ctx, slots.For("k", 1))
					if err == nil {
						time.Sleep(c.hold)
						_ = a.Done(context.Background())
					}
					return err
				})
			defer crowd.end()
			time.Sleep(time.Second)
			grants, calls := make([]int64, c.processes), int64(0)
			for stretch := range 5 {
				granted, asked := crowd.during(length)
				for i, n := range granted {
					grants[i] += n
				}
				calls += asked
				all := sum(grants)
				possible := float64(c.slots*(stretch+1)) * float64(length) / float64(c.hold)
				each := float64(calls-all) / float64(all) // a release is a call of its own
				t.Logf("%d processes, %d slots of %v: %.2f of what is possible, %.2f calls a grant, %d to %d grants", c.processes, c.slots, c.hold, float64(all)/possible, each, slices.Min(grants), slices.Max(grants))
				if apart := slices.Max(grants) / max(slices.Min(grants), 1); float64(all) >= c.least*possible && each <= c.calls && apart < c.apart {
					return
				}
			}
			t.Errorf("want %.2f of what is possible, %.0f calls a grant and no process with %d times the grants of another", c.least, c.calls, c.apart)
		})
	}
}

func TestEqualProcessesShareWindowsAndLogs(t *testing.T) {
	for _, c := range []struct {
		limit              string
		processes, callers int
		calls              float64 // a grant, at most
	}{
		{"fixed window 20/100ms", 10, 5, 1.2},
		{"fixed window 20/1s", 3, 5, 1.2},
		{"sliding log 100/s", 50, 2, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := rule(t, "r", c.limit)
			crowd := newCrowd(t, newServer(t), slices.Repeat([]int{c.callers}, c.processes),
				func(int) waittest.Network {
					return waittest.Network{Way: waittest.Between(randtest.New(randtest.Seed(t)), 150*time.Microsecond, 500*time.Microsecond)}
				},
				func(ctx context.Context, q *pace.Queue, _ int) error {
					_, err := q.Wait(ctx, r.For("k", 1))
					return err
				})
			time.Sleep(time.Second)
			length := 2 * time.Minute
			grants, calls := crowd.during(length)
			crowd.end()
			all, each := sum(grants), float64(calls)/float64(sum(grants))
			possible := int64(weir.Describe(r.Limits()[0]).Rate.Count * int64(length) / int64(weir.Describe(r.Limits()[0]).Rate.Period))
			if apart := slices.Max(grants) / max(slices.Min(grants), 1); all < possible*95/100 || each > c.calls || apart >= 2 {
				t.Errorf("want 0.95 of what is possible, %.1f calls a grant and no process with twice the grants of another", c.calls)
			}
			t.Logf("%s for %d processes: %d of %d, %.2f calls a grant, %d to %d grants", c.limit, c.processes, all, possible, each, slices.Min(grants), slices.Max(grants))
		})
	}
}
