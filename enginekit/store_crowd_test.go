package enginekit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/pace"
)

// randomCrowd is callers of several processes that want slots and rates at random.
type randomCrowd struct {
	*testing.T
	rules   []*weir.Rule
	faulty  bool // or leases of lost releases live
	leave   bool
	mu      sync.Mutex
	held    map[string]int64
	longest time.Duration // that a caller waited after the faults
	served  int
}

// Callers of several processes want slots of several keys in any order, many at once, and rates, hold them for a while and
// sometimes leave, while calls of the store conflict and answers are lost. When that ends, every caller that stays is served,
// no limit is exceeded, and in the end all slots are free. Nothing bounds the wait of a caller of several keys beside other
// processes: of 400 schedules the longest was 6.2 s, the median of the longest 2 s. WEIR_TIMES sets how many fresh schedules
// are tried.
func TestEveryCallerOnAStoreIsServed(t *testing.T) {
	times, seed := 3, uint64(0)
	if text := os.Getenv("WEIR_TIMES"); text != "" {
		times, _ = strconv.Atoi(text)
		seed = rand.Uint64()
	}
	for range times {
		seed++
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testRandomCrowd(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func testRandomCrowd(t *testing.T, r *rand.Rand) {
	s := newLineStore()
	c := &randomCrowd{T: t, held: map[string]int64{}, faulty: true}
	for _, text := range []string{"a=concurrency 2 lease 5s", "b=concurrency 3 lease 5s", "c=token bucket 100/s burst 5", "d=sliding log 50/s"} {
		c.rules = append(c.rules, lineRule(t, text))
	}
	s.breaks(5, 2, 2)
	end := time.Now().Add(20 * time.Second)
	var callers sync.WaitGroup
	for _, q := range queues(t, s, 2+r.IntN(3)) {
		for range 2 + r.IntN(4) {
			own := rand.New(rand.NewPCG(r.Uint64(), 1))
			callers.Go(func() {
				for time.Now().Before(end) {
					c.once(q, own)
				}
			})
		}
	}
	time.Sleep(8 * time.Second)
	s.breaks(0, 0, 0)
	c.mu.Lock()
	c.leave = true // not before: what a caller that leaves cannot give back is given back by the garbage collector, outside the bubble
	c.mu.Unlock()
	time.Sleep(6 * time.Second) // the leases of lost releases
	c.mu.Lock()
	c.faulty = false
	c.mu.Unlock()
	callers.Wait()
	t.Logf("%d served, the longest wait %v", c.served, c.longest)
	if c.longest > 10*time.Second {
		t.Errorf("a caller waited %v", c.longest)
	}
	time.Sleep(6 * time.Second)
	e := enginekit.NewStore(s, enginekit.StoreOptions{})
	for _, rule := range c.rules[:2] {
		if d, err := e.Peek(t.Context(), rule.For("k", 0)); err != nil || d.Remaining != d.Limit {
			t.Errorf("%s in the end: %+v and %v, want all free", rule.Name(), d, err)
		}
	}
}

// once acquires something once.
func (c *randomCrowd) once(q *pace.Queue, r *rand.Rand) {
	var requests []weir.Request
	for _, i := range r.Perm(len(c.rules))[:1+r.IntN(3)] {
		requests = append(requests, c.rules[i].For("k", 1+r.Int64N(2)))
	}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	c.mu.Lock()
	calm, leave, began := !c.faulty, c.leave && r.IntN(4) == 0, time.Now()
	c.mu.Unlock()
	if leave {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(300))*time.Millisecond)
		defer cancel()
	}
	a, err := q.Acquire(ctx, requests...)
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if calm && !errors.Is(err, context.DeadlineExceeded) {
			c.Errorf("after the faults: %v", err)
		}
		return
	}
	c.hold(requests, 1)
	c.mu.Lock()
	c.served++
	if took := time.Since(began); calm {
		c.longest = max(c.longest, took)
	}
	c.mu.Unlock()
	time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
	c.hold(requests, -1)
	for a.Done(c.Context()) != nil {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
}

func (c *randomCrowd) hold(requests []weir.Request, sign int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range requests {
		if held, slots := q.Rule.Limits()[0].(weir.Concurrency); slots {
			if c.held[q.Rule.Name()] += sign * q.Cost; c.held[q.Rule.Name()] > held.Slots {
				c.Errorf("%d units of %s are held", c.held[q.Rule.Name()], q.Rule.Name())
			}
		}
	}
}
