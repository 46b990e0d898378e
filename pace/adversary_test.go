package pace_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/waittest"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/pace"
)

// adversary lets callers of several queues on one engine wait for random requests, while rivals take and return slots
// between two steps of a queue. It checks what a caller may rely on.
type adversary struct {
	*testing.T
	seed    uint64
	name    string
	mu      sync.Mutex
	random  *rand.Rand
	engine  weir.Engine
	guard   *layer.Guarded // around the engine of the queues, or nil
	queues  []*pace.Queue
	rules   []*weir.Rule
	slack   time.Duration // how late a caller may look
	callers []*hunted
	rivals  sync.WaitGroup
	holders int // rivals that have something, or ask for it
	start   time.Time
	inHook  bool
	failing bool
	ended   bool
	patient bool // no caller leaves
}

func (a *adversary) n(n int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.random.IntN(n)
}

func (a *adversary) time(most time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Duration(a.random.Int64N(int64(most)))
}

func (a *adversary) one(of ...string) string { return of[a.n(len(of))] }

// limit makes up a limit.
func (a *adversary) limit() string {
	per := a.one("1s", "3s", "1m", "1h", "700ms", "1d")
	n := []int{1, 2, 3, 7, 100, 1 << 20}[a.n(6)]
	rate := fmt.Sprintf("%d/%s", n, per)
	slots := fmt.Sprintf("concurrency %d%s", 1+a.n(3), a.one("", " lease 1h", " lease 3s", " lease 2d", " lease 100ms"))
	switch a.n(11) {
	case 0, 1:
		return fmt.Sprintf("token bucket %s burst %d", rate, 1+a.n(5))
	case 2:
		return "rate gate " + rate
	case 3:
		return "fixed window " + rate
	case 4:
		return "sliding window " + rate
	case 5:
		return "sliding log " + rate
	case 6:
		return "cycle " + rate
	case 7:
		return fmt.Sprintf("%s and rate gate %s", slots, rate)
	default:
		return slots
	}
}

func newAdversary(t *testing.T, seed uint64) *adversary {
	a := &adversary{T: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), start: time.Now()}
	memory := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { a.interleave(); return time.Now().UnixNano() }})
	a.name = a.one("memory", "remote", "books")
	a.engine, a.slack = weir.Engine(memory), time.Second
	switch a.name {
	case "remote":
		r := remoteOf(memory)
		r.around = a.fail
		a.engine, a.slack = r, 2*time.Second // the second is spread
	case "books":
		a.engine, a.slack = waittest.NewServer(memory).Connect(waittest.Network{}), 2*time.Second
	}
	under := a.engine
	if a.name != "memory" && a.n(3) == 0 {
		guard, err := layer.Guard(under, layer.GuardOptions{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		under, a.guard = guard, guard
	}
	for range 1 + a.n(4) {
		q, err := pace.NewQueue(layertest.Around(under), pace.QueueOptions{Queue: []int{3, 1000}[a.n(2)]})
		if err != nil {
			t.Fatal(err)
		}
		a.queues = append(a.queues, q)
	}
	for i := range 1 + a.n(4) {
		r, err := weir.ParseRule(fmt.Sprintf("r%d=%s", i, a.limit()))
		for err != nil { // a limit out of bounds
			r, err = weir.ParseRule(fmt.Sprintf("r%d=%s", i, a.limit()))
		}
		a.rules = append(a.rules, r)
	}
	a.failing = a.n(4) == 0
	if a.patient = a.n(3) == 0; a.name == "books" && !a.patient {
		a.slack = time.Hour // an instant that nobody needs brings nothing back, and the engine admits others meanwhile
	}
	return a
}

// fail makes a call of a remote engine, which may fail.
func (a *adversary) fail(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
	if (c.Op == weir.OpTake || c.Op == weir.OpTakeUpTo) && a.failing && a.n(20) == 0 {
		return weir.Answer{}, errBroken
	}
	return next(ctx, c)
}

// interleave lets a rival act between two steps of the queue.
func (a *adversary) interleave() {
	a.mu.Lock()
	if a.inHook || a.ended || a.random.IntN(20) > 0 || len(a.rules) == 0 {
		a.mu.Unlock()
		return
	}
	a.inHook = true
	a.mu.Unlock()
	a.rival()
	a.mu.Lock()
	a.inHook = false
	a.mu.Unlock()
}

// request makes up a request of one or several keys.
func (a *adversary) requests() (requests []weir.Request) {
	for _, i := range rand.New(rand.NewPCG(uint64(a.n(1<<30)), 1)).Perm(len(a.rules))[:1+a.n(min(3, len(a.rules)))] {
		requests = append(requests, a.rules[i].For(strconv.Itoa(a.n(2)), int64(1+a.n(2))))
	}
	if a.n(30) == 0 {
		requests[0].Cost = 0
	}
	return requests
}

func hasSlots(requests []weir.Request) bool {
	return slices.ContainsFunc(requests, func(q weir.Request) bool {
		return slices.ContainsFunc(q.Rule.Limits(), func(l weir.Limit) bool { _, is := l.(weir.Concurrency); return is })
	})
}

// rival takes something of the engine, and returns slots later. It returns no units of rates, so that no caller may go
// before the instant that the engine named.
func (a *adversary) rival() {
	a.mu.Lock()
	begins := !a.ended && a.holders < 50 && time.Since(a.start) < time.Minute
	if begins {
		a.rivals.Add(1)
		a.holders++
	}
	a.mu.Unlock()
	if !begins {
		return
	}
	requests := a.requests()
	r, err := a.engine.Reserve(context.Background(), requests...)
	if err != nil || !r.Decision.Allowed {
		a.rivalEnds()
		return
	}
	holds := a.time(5 * time.Second)
	go func() {
		defer a.rivalEnds()
		time.Sleep(holds)
		for r.Done(context.Background()) != nil {
			time.Sleep(time.Millisecond)
		}
	}()
}

func (a *adversary) rivalEnds() {
	a.mu.Lock()
	a.holders--
	a.mu.Unlock()
	a.rivals.Done()
}

// run makes up callers and lets them wait, beside rivals.
func (a *adversary) run() {
	a.makeUpCallers()
	var group, others sync.WaitGroup
	for _, c := range a.callers {
		group.Go(func() { a.caller(c) })
	}
	stop := make(chan struct{})
	every := func(pause func() time.Duration, do func()) {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(pause()):
					do()
				}
			}
		})
	}
	every(func() time.Duration { return a.time(time.Second) }, func() {
		if time.Since(a.start) < 30*time.Second {
			a.rival()
		}
	})
	every(func() time.Duration { return 50 * time.Millisecond }, func() {
		if time.Since(a.start) < 5*time.Minute {
			a.watch()
		}
	})
	group.Wait()
	a.end()
	close(stop)
	others.Wait()
	a.rivals.Wait()
	a.checkCounts()
	a.checkSlots()
	a.checkOrder()
	if a.guard != nil {
		a.guard.Close()
	}
}

// end ends the rivals.
func (a *adversary) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
}

func TestRivalsDoNotHoldUpWaitingCallers(t *testing.T) {
	for seed := range randtest.Seeds(t, 15, 6) {
		synctest.Test(t, func(t *testing.T) {
			a := newAdversary(t, seed)
			a.run()
			if t.Failed() {
				t.Logf("engine %s guarded %v queues %d rules %v", a.name, a.guard != nil, len(a.queues), a.rules)
			}
		})
	}
}
