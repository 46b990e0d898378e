package waittest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/pace"
)

// hopeless is a kind of calls that can never be admitted.
type hopeless struct {
	name string
	// of returns such a call beside one that can be.
	of   func(r weir.Request) []weir.Request
	past bool  // its deadline
	err  error // what refuses it
}

const blocked = "blocked" // a key that Resolve blocks, as a daemon does

var allHopeless = []hopeless{
	{name: "a cost above the capacity", err: weir.ErrNever, of: func(r weir.Request) []weir.Request {
		r.Cost = capacityOf(r.Rule) + 1
		return []weir.Request{r}
	}},
	{name: "costs whose sum is above the capacity", err: weir.ErrNever, of: func(r weir.Request) []weir.Request {
		more := r
		more.Cost = capacityOf(r.Rule)
		return []weir.Request{r, more}
	}},
	{name: "a deadline in the past", err: context.DeadlineExceeded, past: true, of: func(r weir.Request) []weir.Request { return []weir.Request{r} }},
	{name: "a blocked key beside another", err: weir.ErrNever, of: func(r weir.Request) []weir.Request {
		second := r
		second.Key = blocked
		return []weir.Request{r, second}
	}},
	{name: "a blocked key", err: weir.ErrNever, of: func(r weir.Request) []weir.Request {
		r.Key = blocked
		return []weir.Request{r}
	}},
	{name: "a rule that is gone", err: weir.ErrRequest, of: func(r weir.Request) []weir.Request {
		return []weir.Request{r, new(weir.Rule).For(r.Key, 1)}
	}},
}

func capacityOf(r *weir.Rule) (least int64) {
	least = weir.MaxCount
	for _, l := range r.Limits() {
		least = min(least, weir.Describe(l).Capacity)
	}
	return least
}

// resolve blocks keys.
func resolve(r weir.Request) weir.Request {
	if r.Key == blocked {
		r.Rule = enginekit.Keep(r.Rule, func(r *weir.Rule) *denied {
			rule, err := weir.NewRule(r.Name(), weir.DenyAll{})
			if err != nil {
				panic(err) // the name is that of a rule
			}
			return &denied{rule}
		}).rule
	}
	return r
}

type denied struct{ rule *weir.Rule }

// call makes a call that can never be admitted, and fails the test unless it is refused.
func (h *hopeless) call(ctx context.Context, t *testing.T, q pace.QueueFlow, r weir.Request) {
	own, cancel := ctx, func() {}
	if h.past {
		own, cancel = context.WithDeadline(ctx, time.Now().Add(-time.Second))
	}
	defer cancel()
	requests, want := h.of(r), h.err
	if len(requests) > 1 && r.Rule.Delays() { // it stands alone
		want = weir.ErrRequest
	}
	if _, err := q.Wait(own, requests...); !errors.Is(err, want) && !errors.Is(err, h.err) && ctx.Err() == nil {
		t.Errorf("%s of %v: got %v, want %v", h.name, r.Rule, err, h.err)
	}
}

// crowd is thirty callers of a key that share it by flows or go by arrival.
type crowd struct {
	*testing.T
	world   World
	rule    *weir.Rule
	flows   bool
	ctx     context.Context
	all     sync.WaitGroup
	granted atomic.Int64
}

const (
	crowdCallers = 30
	crowdWorks   = 20 * time.Millisecond // with slots
)

// Limits are those that Hopeless knows, a limit of each kind.
var Limits = []string{"token bucket 100/s burst 10", "sliding log 20/200ms", "fixed window 20/200ms", "first window 20/200ms", "concurrency 4 lease 30s", "rate gate 20/200ms", "cycle 20/200ms", "leaky bucket 100/s queue 9", "token bucket 100/s burst 10 and cycle 50/500ms", "token bucket 100/s burst 10 and ban 200ms after 5/1s"}

// Hopeless has callers wait for a limit in one of two ways: among themselves, and under another key beside callers, in
// their process and in another one, that make hopeless requests again and again. Both get the same, except for a share
// of it and the grants that fall just inside or outside of the time. On a real server the part is large, because a busy
// machine serves one crowd before the other.
func Hopeless(t *testing.T, seed uint64, w World, limit string, length time.Duration, within float64, edge int64) {
	random := rand.New(rand.NewPCG(seed, 1))
	rule, err := weir.ParseRule("r=" + limit)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	flows := random.IntN(2) == 0
	network := func() Network { // as far for both
		return Network{Way: Between(randtest.New(seed), 150*time.Microsecond, 450*time.Microsecond)}
	}
	var crowds [2]*crowd
	for i := range crowds {
		c := &crowd{T: t, world: w, rule: rule, flows: flows, ctx: ctx}
		crowds[i] = c
		key := fmt.Sprint("k", i)
		q := c.queue(network())
		c.come(q, key)
		if i == 0 {
			continue
		}
		other := c.queue(network())
		for range 2 + random.IntN(6) {
			c.bother([]*pace.Queue{q, other}[random.IntN(2)], key, &allHopeless[random.IntN(len(allHopeless))], []time.Duration{time.Millisecond, 10 * time.Millisecond, 250 * time.Millisecond}[random.IntN(3)])
		}
	}
	time.Sleep(length/4 + 37*time.Millisecond) // not at the beginning of a window
	before := [2]int64{crowds[0].granted.Load(), crowds[1].granted.Load()}
	time.Sleep(length)
	alone, beside := crowds[0].granted.Load()-before[0], crowds[1].granted.Load()-before[1]
	stop()
	for _, c := range crowds {
		c.all.Wait()
	}
	t.Logf("%v, in flows %v: %d grants in %v, %d beside hopeless calls", rule, flows, alone, length, beside)
	if most := int64(float64(alone)*within) + edge; alone == 0 || beside < alone-most || beside > alone+most {
		t.Errorf("%v, in flows %v: %d grants beside hopeless calls, want the %d without them", rule, flows, beside, alone)
	}
}

func (c *crowd) queue(n Network) *pace.Queue {
	q, err := pace.NewQueue(c.world.Connect(n), pace.QueueOptions{Resolve: resolve, NoBooking: c.world.Asks})
	if err != nil {
		c.Fatal(err)
	}
	return q
}

// flow returns the queue for a name. Without flows all names are one.
func (c *crowd) flow(q *pace.Queue, name string) pace.QueueFlow {
	if !c.flows {
		name = ""
	}
	flow, err := q.InFlow(name, 1)
	if err != nil {
		c.Fatal(err)
	}
	return flow
}

// come starts the callers that can be admitted.
func (c *crowd) come(q *pace.Queue, key string) {
	for i := range crowdCallers {
		flow := c.flow(q, fmt.Sprint("good", i%2))
		c.all.Go(func() {
			for c.ctx.Err() == nil {
				if err := c.work(flow, c.rule.For(key, 1)); err != nil {
					if c.ctx.Err() == nil {
						c.Errorf("%v: %v", c.rule, err)
					}
					return
				}
				c.granted.Add(1)
			}
		})
	}
}

// work waits, and holds slots for a while.
func (c *crowd) work(q pace.QueueFlow, r weir.Request) error {
	if weir.Kit.Held(r.Rule) == nil {
		_, err := q.Wait(c.ctx, r)
		return err
	}
	a, err := q.Acquire(c.ctx, r)
	if err != nil {
		return err
	}
	time.Sleep(crowdWorks)
	return a.Done(context.WithoutCancel(c.ctx))
}

// bother starts a caller that makes hopeless calls.
func (c *crowd) bother(q *pace.Queue, key string, h *hopeless, pause time.Duration) {
	flow := c.flow(q, "bad "+strings.Fields(h.name)[1])
	c.all.Go(func() {
		for c.ctx.Err() == nil {
			h.call(c.ctx, c.T, flow, c.rule.For(key, 1))
			time.Sleep(pause)
		}
	})
}
