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
//
// Each rule of slotWatch is missed: without it a row costs more calls, grants less, or gives one process too much. The comments
// say what was measured without it.
func TestEqualProcessesShareSlots(t *testing.T) {
	const ms, near, far = time.Millisecond, 150 * time.Microsecond, 2500 * time.Microsecond
	shortest := 30 * time.Second
	if testing.Short() {
		shortest = 10 * time.Second
	}
	for _, c := range []struct {
		processes, callers, slots int
		hold                      time.Duration
		way                       time.Duration // to the server, and up to three times as long
		deaf                      bool
		least                     float64 // share of what is possible
		calls                     float64 // a grant, at most
		apart                     float64 // the most grants of a process for one of another
	}{
		{4, 10, 8, 40 * ms, near, false, 0.93, 1.1, 2}, // no pause: 1.5 calls
		{3, 20, 4, 20 * ms, near, false, 0.85, 2, 2},
		{4, 2, 1, 100 * ms, near, false, 0.93, 4.2, 3}, // no streak: one process may have nothing
		{4, 2, 1, 2 * ms, near, false, 0.55, 3, 1.5},
		{1, 2, 1, 2 * ms, near, false, 0.53, 1.05, 1},    // own signals are news: 1.5 calls
		{12, 1, 4, 50 * ms, near, false, 0.93, 3.5, 2.5}, // an unused key is forgotten: 365 grants beside 65
		{50, 10, 8, 40 * ms, near, false, 0.93, 7.1, 16}, // the spread does not grow: 8.2 calls, and 7.5 if it is 10 ms
		{50, 2, 1, 20 * ms, near, false, 0.9, 30, 8},     // 50 calls in both cases
		{4, 10, 8, 40 * ms, far, false, 0.6, 1.2, 2},     // one caller asks after news: 1.5 calls
		{4, 10, 8, 40 * ms, near, true, 0.9, 1, 3},       // other ends do not matter: 0.85; the pause is short: 0.83
		{4, 2, 1, 100 * ms, near, true, 0.93, 5.2, 3},    // refusals end no streak: 630 grants beside 85
		{3, 40, 40, 200 * ms, near, true, 0.9, 1, 2},     // an unused key is forgotten: 4,294 beside 773
	} {
		synctest.Test(t, func(t *testing.T) {
			server := newServer(t)
			slots := rule(t, "slots", "concurrency "+strconv.Itoa(c.slots)+" lease 30s")
			random := randtest.New(randtest.Seed(t))
			network := waittest.Network{Way: waittest.Between(random, c.way, 3*c.way), Deaf: func() bool { return c.deaf }}
			crowd := newCrowd(t, server, slices.Repeat([]int{c.callers}, c.processes), func(int) waittest.Network { return network },
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
			length := max(shortest, 300*c.hold/time.Duration(c.slots))
			for stretch := range 10 { // who is lucky changes within seconds
				granted, asked := crowd.during(length)
				for i, n := range granted {
					grants[i] += n
				}
				calls += asked
				all, least, most := sum(grants), slices.Min(grants), slices.Max(grants)
				possible := float64(c.slots*(stretch+1)) * float64(length) / float64(c.hold)
				each := float64(calls-all) / float64(all) // a release is a call of its own
				t.Logf("%d processes of %d, %d slots of %v, deaf: %v: %.2f of what is possible, %.2f calls a grant, %d to %d grants",
					c.processes, c.callers, c.slots, c.hold, c.deaf, float64(all)/possible, each, least, most)
				if float64(all) >= c.least*possible && each <= c.calls && float64(most) <= c.apart*float64(max(least, 1)) {
					return
				}
			}
			t.Errorf("want %.2f of what is possible, %.2f calls a grant and no process with %.1f times the grants of another", c.least, c.calls, c.apart)
		})
	}
}

func TestEqualProcessesShareWindowsAndLogs(t *testing.T) {
	for _, c := range []struct {
		limit              string
		processes, callers int
		calls              float64 // a grant, at most
	}{
		{"fixed window 20/100ms", 10, 5, 1.05}, // one caller fewer travels: 1.1
		{"fixed window 20/1s", 3, 5, 1.05},
		{"sliding log 100/s", 50, 2, 1.2}, // and 1.5
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
				t.Errorf("want 0.95 of what is possible, %.2f calls a grant and no process with twice the grants of another", c.calls)
			}
			t.Logf("%s for %d processes: %d of %d, %.2f calls a grant, %d to %d grants", c.limit, c.processes, all, possible, each, slices.Min(grants), slices.Max(grants))
		})
	}
}
