package layer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/layer"
)

// hostile is an engine, its callers and the functions of a program, of which each does the worst at random.
type hostile struct {
	t        *testing.T
	mu       sync.Mutex
	draw     *rand.Rand
	memory   *weir.Memory
	hang     chan struct{} // until it is closed, the engine fails
	guard    *layer.Guarded
	prefetch *layer.Prefetched
	layered  weir.Engine
	rules    []*weir.Rule
}

// Whatever the engine, the callers and the functions of the program do, answers come in time, and in the end nothing is left.
func TestAnswersComeInTimeAmongHostileNeighbours(t *testing.T) {
	for seed := range randtest.Seeds(t, 60, 12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runHostile(t, seed) })
		})
	}
}

func runHostile(t *testing.T, seed uint64) {
	h := &hostile{t: t, draw: rand.New(rand.NewPCG(seed, 31)), hang: make(chan struct{})}
	h.memory = weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return time.Now().UnixNano() }})
	for _, text := range []string{"a=20/1s burst 40", "b=fixed window 50/1s", "c=concurrency 3 lease 5s", "d=10/1s and concurrency 4",
		"e=sliding log 10/1s", "f=cycle 50/1s and 30/1s", "g=leaky bucket 10/1s queue 5", "h=sliding log 5/1s count denied"} {
		h.rules = append(h.rules, mustRule(t, text))
	}
	h.open()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 80 {
				h.ask()
				time.Sleep(time.Duration(h.number(30)) * time.Millisecond)
			}
		})
	}
	all.Wait()
	close(h.hang)
	time.Sleep(5 * time.Second)
	for range 4 { // the probes that close the breaker
		_, _ = h.layered.Take(context.Background(), mustRule(t, "free=unlimited").For("k", 1))
		time.Sleep(300 * time.Millisecond)
	}
	h.prefetch.Close()
	h.guard.Close()
	if g, l := h.guard.Stats(), h.prefetch.Stats(); g.Away || g.Owed != 0 || g.Queued != 0 || g.Hanging != 0 || l.Out != 0 {
		t.Errorf("after all faults: %+v and %+v, want the engine back and nothing owed, hanging or taken ahead", g, l)
	}
	time.Sleep(10 * time.Second) // leases end
}

// open puts all layers around the engine.
func (h *hostile) open() {
	policy := func() layer.Policy { return layer.Policy(h.number(3)) }
	h.guard = guarded(h.t, weir.Kit.EngineOf(h.do, h.memory.Check), layer.GuardOptions{MaxKeys: 1 + h.number(50), OnFailure: policy(),
		Rules:    map[string]layer.Policy{"a": policy(), "b": policy(), "c": policy()},
		PeersNow: func() int { h.panics(); return h.number(5) - 1 }, OnChange: func(layer.GuardChange) { h.panics() }})
	var problems [4]error
	h.prefetch, problems[0] = layer.Prefetch(h.guard, layer.PrefetchOptions{MaxKeys: 1 + h.number(50)})
	denier, err := layer.DenyUntil(h.prefetch, layer.DenyOptions{MaxKeys: 1 + h.number(8)})
	problems[1] = err
	shadow, err := layer.Shadow(denier, layer.ShadowOptions{Candidates: map[string]*weir.Rule{"a": mustRule(h.t, "a=3/1s"), "c": mustRule(h.t, "c=concurrency 1 and 3/1m")},
		Decided: func(layer.ShadowDecision) { h.panics() }})
	problems[2] = err
	h.layered, problems[3] = layer.Observe(shadow, layer.ObserveOptions{Sample: h.number(3), Decided: func(context.Context, layer.Observation) { h.panics() }})
	if err := errors.Join(problems[:]...); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hostile) number(below int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.draw.IntN(below)
}

func (h *hostile) panics() {
	if h.number(3) == 0 {
		panic("a bug of the program")
	}
}

// do is the engine.
func (h *hostile) do(ctx context.Context, call weir.Call) (weir.Answer, error) {
	fault := h.number(10)
	select {
	case <-h.hang:
		fault = -1
	default:
	}
	switch fault {
	case 0:
		return weir.Answer{}, errAway
	case 1:
		panic("a bug of the engine")
	case 2:
		<-h.hang
	case 3:
		<-ctx.Done()
		return weir.Answer{}, ctx.Err()
	case 4:
		_, err := h.memory.Do(ctx, call)
		return weir.Answer{}, errors.Join(errors.New("the answer is lost"), err)
	case 5:
		time.Sleep(time.Duration(h.number(40)) * time.Millisecond)
	case 6:
		return weir.Answer{}, weir.Kit.Unsupported(call.Op, "is not made today")
	case 7:
		runtime.Goexit()
	case 8:
		if _, err := enginekit.Merge(call.Op, call.Requests); err == nil {
			return weir.Answer{Times: int64(h.number(100)) - 50, Decision: weir.Decision{Allowed: h.number(2) == 0, RefusedBy: uint8(h.number(256)), Rule: "a", Key: key(h.number(6)),
				Limit: int64(h.number(99)) - 50, Remaining: int64(h.number(99)) - 50, RetryAfter: time.Duration(h.number(99)) - 50, ResetAfter: time.Duration(h.number(99)) - 50}}, nil
		}
	}
	return h.memory.Do(ctx, call)
}

func (h *hostile) request() weir.Request {
	cost := []int64{-5, 1 << 62, int64(h.number(5)), int64(h.number(5))}[h.number(4)]
	return h.rules[h.number(len(h.rules))].For(key(h.number(6)), cost)
}

// ask makes a call, perhaps one that has left or that no engine can make, and settles what it reserved.
func (h *hostile) ask() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(h.number(30))*time.Millisecond)
	defer cancel()
	call := weir.Call{Op: weir.Op(h.number(10)), Most: int64(h.number(9)) - 1, Longest: time.Second, Waits: h.number(2) == 0, Lease: uint64(h.number(3))}
	call.Within = []time.Duration{0, 0, time.Duration(1 + h.number(30)*int(time.Millisecond))}[h.number(3)]
	for range h.number(4) {
		call.Requests = append(call.Requests, h.request())
	}
	if call.Op == weir.OpEach && h.number(5) > 0 {
		call.Each = &weir.Batch{Results: make([]weir.Result, h.number(4))}
		for range len(call.Each.Results) + h.number(6)/5 {
			call.Each.Calls = append(call.Each.Calls, weir.Call{Op: weir.Op(h.number(10)), Requests: []weir.Request{h.request()}})
		}
	}
	began := time.Now()
	a, err := h.layered.Do(ctx, call)
	if took := time.Since(began); took > 20*time.Millisecond {
		h.t.Errorf("%s took %v: %+v, %v; want an answer within 20 ms", call.Op, took, a, err)
	}
	if h.number(2) == 0 {
		_ = a.Reservation.Settle(context.Background(), int64(h.number(5)))
	}
}
