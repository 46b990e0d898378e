package pace_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/pace"
)

// scheduled is a caller of a schedule: when it comes, what it asks for, and when it leaves or releases.
type scheduled struct {
	comes, leaves time.Duration // leaves is 0 if it waits to the end
	holds         time.Duration // how long it holds what it acquired; 0 if it does not acquire
	requests      []weir.Request
	flow          string // callers of some keys are all in flows, of others in none
	weight        int64

	waiting bool
	went    time.Duration // -1 if it has not gone
	held    *weir.Reservation
}

// slowModel looks at all waiting callers in order of arrival at each instant at which anything may happen.
type slowModel struct {
	*testing.T
	now     int64 // ns since the start
	epoch   int64
	engine  *weir.Memory
	callers []*scheduled // in order of arrival
	soon    []int64      // instants at which a key may no longer be kept
	fair    fairModel
}

func (m *slowModel) peek(q ...weir.Request) weir.Decision {
	d, err := m.engine.Peek(m.Context(), q...)
	if err != nil {
		m.Fatal(err)
	}
	return d
}

func uses(c *scheduled, q weir.Request) *weir.Request {
	for i := range c.requests {
		if c.requests[i].Rule.String() == q.Rule.String() && c.requests[i].Key == q.Key {
			return &c.requests[i]
		}
	}
	return nil
}

// kept reports whether an earlier caller keeps a key of c, all of which admit c.
func (m *slowModel) kept(c *scheduled) bool {
	for _, q := range c.requests {
		first := true
		for _, e := range m.callers {
			if e == c {
				break
			}
			own := uses(e, q)
			if !e.waiting || own == nil || m.fair.behind(c, e) {
				continue
			}
			if !m.peek(*own).Allowed {
				return true
			}
			if first && m.fair.first(e, m.callers) {
				first = false
				after, err := m.engine.PeekAfter(m.Context(), q.Cost, *own)
				if err != nil {
					m.Fatal(err)
				}
				if after.RetryAfter > m.peek(e.requests...).RetryAfter {
					m.soon = append(m.soon, m.now+int64(after.RetryAfter))
					return true
				}
			}
		}
	}
	return false
}

// look lets one caller go, if one may.
func (m *slowModel) look() bool {
	for _, c := range m.callers {
		if !c.waiting || !m.fair.first(c, m.callers) || !m.peek(c.requests...).Allowed || m.kept(c) {
			continue
		}
		m.fair.serves(c)
		c.waiting, c.went = false, time.Duration(m.now)
		m.fair.leaves(c, m.callers)
		if c.holds == 0 {
			if d, err := m.engine.Take(m.Context(), c.requests...); err != nil || !d.Allowed {
				m.Fatal(d, err)
			}
			return true
		}
		r, err := m.engine.Reserve(m.Context(), c.requests...)
		if err != nil || !r.Decision.Allowed {
			m.Fatal(err)
		}
		c.held = r
		return true
	}
	return false
}

// run plays the schedule to its end.
func (m *slowModel) run(end time.Duration) {
	for m.now <= int64(end) {
		for _, c := range m.callers {
			switch now := time.Duration(m.now); {
			case c.comes == now:
				m.fair.comes(c, m.callers)
				c.waiting = true
			case c.waiting && c.leaves == now:
				c.waiting = false
				m.fair.leaves(c, m.callers)
			case c.held != nil && c.went+c.holds == now:
				if err := c.held.Done(m.Context()); err != nil {
					m.Fatal(err)
				}
				c.held = nil
			}
			for m.look() {
			}
		}
		m.now = m.next(end)
	}
}

// next returns the next instant at which anything may happen.
func (m *slowModel) next(end time.Duration) int64 {
	next := int64(end) + 1
	at := func(t time.Duration) {
		if int64(t) > m.now {
			next = min(next, int64(t))
		}
	}
	for _, instant := range m.soon {
		at(time.Duration(instant))
	}
	m.soon = slices.DeleteFunc(m.soon, func(instant int64) bool { return instant <= m.now })
	for _, c := range m.callers {
		at(c.comes)
		at(c.leaves)
		if c.held != nil {
			at(c.went + c.holds)
		}
		if c.waiting {
			for _, q := range c.requests {
				if wait := m.peek(q).RetryAfter; wait < time.Hour {
					at(time.Duration(m.now) + wait)
				}
			}
		}
	}
	return next
}

// schedule makes up callers that share some of their keys.
func schedule(t *testing.T, random *rand.Rand) []*scheduled {
	hosts := rule(t, "host", []string{"token bucket 1/s burst 1", "rate gate 2/s", "fixed window 2/1s", "sliding log 2/s"}[random.IntN(4)])
	faster := rule(t, "host", []string{"token bucket 3/s burst 2", "rate gate 3/s", "fixed window 3/1s", "sliding log 3/s"}[random.IntN(4)])
	total := rule(t, "total", []string{"token bucket 3/s burst 4", "rate gate 4/s", "sliding window 5/1s"}[random.IntN(3)])
	slots := rule(t, "slots", "concurrency 2")
	var callers []*scheduled
	most := 1 + random.Int64N(2)
	flows := random.IntN(2) == 0 // callers of a host and the total are in flows
	for range 40 {
		c := &scheduled{comes: time.Duration(random.Int64N(int64(6 * time.Second))), went: -1}
		if random.IntN(4) == 0 {
			c.leaves = c.comes + time.Duration(1+random.Int64N(int64(4*time.Second)))
		}
		host := hosts
		if random.IntN(8) == 0 {
			host = faster // the limit of a key changes with its callers
		}
		key := strconv.Itoa(random.IntN(3))
		switch random.IntN(5) {
		case 0:
			c.requests = []weir.Request{total.For("all", 1+random.Int64N(most))}
		case 1:
			c.requests = []weir.Request{host.For(key, 1)}
		case 2:
			c.requests = []weir.Request{slots.For("s", 1), total.For("all", 1)}
			c.holds = time.Duration(1 + random.Int64N(int64(time.Second)))
		default:
			c.requests = []weir.Request{host.For(key, 1), total.For("all", 1+random.Int64N(most))}
			if flows {
				i := random.Int64N(3)
				c.flow, c.weight = strconv.FormatInt(i, 10), 1+2*i
			}
		}
		callers = append(callers, c)
	}
	slices.SortFunc(callers, func(a, b *scheduled) int { return cmp.Compare(a.comes, b.comes) })
	return callers
}

// play runs the schedule on a queue, and returns the instants at which the callers went.
func play(t *testing.T, q *pace.Queue, callers []*scheduled) []time.Duration {
	start, went := time.Now(), make([]time.Duration, len(callers))
	var group sync.WaitGroup
	for i, c := range callers {
		went[i] = -1
		group.Go(func() {
			time.Sleep(c.comes)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.leaves > 0 {
				time.AfterFunc(c.leaves-c.comes, cancel)
			}
			if c.holds == 0 {
				wait := q.Wait
				if c.flow != "" {
					wait = mustFlow(t, q, c.flow, c.weight).Wait
				}
				if _, err := wait(ctx, c.requests...); err == nil {
					went[i] = time.Since(start)
				}
				return
			}
			a, err := q.Acquire(ctx, c.requests...)
			if err != nil {
				return
			}
			went[i] = time.Since(start)
			time.Sleep(c.holds)
			if err := a.Done(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	return went
}

func checkAgainstTheModel(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	synctest.Test(t, func(t *testing.T) {
		callers := schedule(t, random)
		engine := mustMemory(t)
		q, err := pace.NewQueue(layertest.Around(engine), pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		epoch := time.Now().UnixNano()
		got := play(t, q, callers)
		m := &slowModel{T: t, epoch: epoch, callers: callers, fair: fairModel{}}
		m.engine = weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return m.epoch + m.now }})
		m.run(time.Minute)
		for _, i := range byFirst(got, callers) {
			if c := callers[i]; got[i] != c.went {
				t.Fatalf("caller %d of %v in flow %q, which came at %v and leaves at %v, went at %v, want %v", i, texts(c.requests), c.flow, c.comes, c.leaves, got[i], c.went)
			}
		}
	})
}

// byFirst returns the callers in order of the earlier of the two instants at which they went.
func byFirst(got []time.Duration, callers []*scheduled) []int {
	first := func(i int) time.Duration {
		if got[i] < 0 || callers[i].went < 0 {
			return max(got[i], callers[i].went)
		}
		return min(got[i], callers[i].went)
	}
	order := make([]int, len(callers))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(first(i), first(j)) })
	return order
}

func texts(requests []weir.Request) (all []string) {
	for _, q := range requests {
		all = append(all, fmt.Sprintf("%d of %s %s", q.Cost, q.Rule, q.Key))
	}
	return all
}

func TestCallersThatShareKeysGoAsAModelThatKnowsAllSays(t *testing.T) {
	for seed := range randtest.Seeds(t, 20, 8) {
		checkAgainstTheModel(t, seed)
	}
}

func FuzzCallersThatShareKeys(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkAgainstTheModel(t, seed) })
}

// The callers of each host, and the most bytes of a waiting caller besides its stack.
var crawlersPerHost, bytesOfACaller = 50, int64(1024)

// A crawler has many callers for each of many hosts, and a total for all.
func TestACrawlersTotalIsUsedWhole(t *testing.T) {
	const hosts, perSecond = 1000, 200
	perHost := crawlersPerHost
	synctest.Test(t, func(t *testing.T) {
		engine := mustMemory(t)
		q, err := pace.NewQueue(layertest.Around(engine), pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		host, total := rule(t, "host", "rate gate 1/s"), rule(t, "total", "token bucket 200/s burst 1")
		start := time.Now()
		last := make([]time.Duration, hosts)
		came, next := make([]int, hosts), make([]int, hosts) // callers of each host, and the one whose turn it is
		var mu sync.Mutex
		var callers sync.WaitGroup
		heap := func() int64 {
			var stats runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&stats)
			return int64(stats.HeapAlloc)
		}
		empty, begin := heap(), make(chan int)
		for range hosts * perHost {
			callers.Go(func() {
				var h int
				select { // what a sleeping goroutine takes in any case
				case h = <-begin:
				case <-t.Context().Done():
				}
				number := came[h]
				came[h]++
				if _, err := q.Wait(t.Context(), host.For(strconv.Itoa(h), 1), total.For("all", 1)); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				now := time.Since(start)
				if next[h] > 0 && now-last[h] < time.Second {
					t.Errorf("host %d was asked %v after the last time", h, now-last[h])
				}
				if next[h] != number {
					t.Errorf("host %d: caller %d went, want caller %d", h, number, next[h])
				}
				last[h] = now
				next[h]++
			})
		}
		synctest.Wait()
		asleep := heap()
		// The hosts come in turn. In the order in which goroutines happen to start, the last two callers of one host
		// can come together, and then one of them has to wait alone for the host's second.
		for i := range hosts * perHost {
			begin <- i % hosts
			synctest.Wait()
		}
		synctest.Wait()
		waiting := int64(q.Waiting())
		each := (heap() - asleep) / waiting
		t.Logf("a goroutine takes %d bytes besides its stack, and %d more when it waits in a queue of %d", (asleep-empty)/waiting, each, waiting)
		if each > bytesOfACaller {
			t.Errorf("a waiting caller takes %d bytes besides its stack, want at most %d", each, bytesOfACaller)
		}
		callers.Wait()
		took := time.Since(start).Seconds()
		if used := float64(hosts*perHost) / took / perSecond; used < 0.99 {
			t.Errorf("%d requests took %.1f s: %.1f %% of the total were used, want 99 %%", hosts*perHost, took, 100*used)
		}
	})
}
