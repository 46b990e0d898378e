package layer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/layer"
)

// historyRule is a rule of the histories, with what any stretch of time may admit.
type historyRule struct {
	text          string
	burst, count  int64
	period, phase time.Duration
	windowed      bool
	sliding       bool // at most count in any period
	ahead         bool
}

var historyRules = []historyRule{
	{text: "bucket=20/1s burst 40", burst: 40, count: 20, period: time.Second, ahead: true},
	{text: "slow=60/1m", burst: 60, count: 60, period: time.Minute, ahead: true},
	{text: "odd=7/1s burst 100", burst: 100, count: 7, period: time.Second, ahead: true},
	{text: "window=fixed window 50/1s", count: 50, period: time.Second, windowed: true, ahead: true},
	{text: "cycle=cycle 50/700ms origin 100ms", count: 50, period: 700 * time.Millisecond, phase: 100 * time.Millisecond, windowed: true, ahead: true},
	{text: "log=sliding log 30/1s", count: 30, period: time.Second, sliding: true},
	{text: "gate=rate gate 30/1s", count: 30, period: time.Second, sliding: true},
}

// admission is a cost that was admitted by a call.
type admission struct {
	began, ended time.Time
	cost         int64
}

// history is processes that ask one engine over links that fail.
type history struct {
	t          *testing.T
	draw       *rand.Rand
	memory     *weir.Memory
	policy     layer.Policy
	links      []*remote
	guards     []*layer.Guarded
	prefetches []*layer.Prefetched
	mu         sync.Mutex
	busy       [2]int // rules
	admitted   map[string][]admission
}

func TestHistoriesOfGuardsAndPrefetchesKeepTheBounds(t *testing.T) {
	for seed := range randtest.Seeds(t, 60, 12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runHistory(t, seed) })
		})
	}
}

func runHistory(t *testing.T, seed uint64) {
	h := &history{t: t, draw: rand.New(rand.NewPCG(seed, 30)), admitted: map[string][]admission{}, policy: layer.Policy(seed % 2)}
	h.memory = weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return time.Now().UnixNano() }})
	time.Sleep(time.Duration(h.draw.Int64N(int64(time.Second))))
	processes := 1 + h.draw.IntN(4)
	h.busy = [2]int{h.draw.IntN(len(historyRules)), h.draw.IntN(len(historyRules))}
	for i := range processes {
		h.start(processes, i%2 == 0)
	}
	var all sync.WaitGroup
	for i, l := range h.prefetches {
		for caller := range 2 {
			draw := rand.New(rand.NewPCG(seed, uint64(100*i+caller)))
			all.Go(func() { h.ask(l, draw) })
		}
		draw := rand.New(rand.NewPCG(seed, uint64(1000+i)))
		all.Go(func() { h.breakLink(h.links[i], draw) })
	}
	all.Wait()
	h.recover()
	for i := range historyRules {
		h.check(&historyRules[i], int64(processes))
	}
}

// start starts a process.
func (h *history) start(processes int, punctual bool) {
	link := &remote{memory: h.memory, punctual: punctual}
	link.Engine = weir.Kit.EngineOf(link.do, h.memory.Check)
	g := guarded(h.t, link, layer.GuardOptions{OnFailure: h.policy, Peers: processes})
	h.links, h.guards, h.prefetches = append(h.links, link), append(h.guards, g), append(h.prefetches, prefetched(h.t, g))
}

// ask takes costs at random, in bursts, for some seconds.
func (h *history) ask(l *layer.Prefetched, draw *rand.Rand) {
	rules := []*weir.Rule{mustRule(h.t, historyRules[h.busy[0]].text), mustRule(h.t, historyRules[h.busy[1]].text)}
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); {
		for range 1 + draw.IntN(20) {
			rule, cost := rules[draw.IntN(len(rules))], 1+draw.Int64N(3)
			began := time.Now()
			call := weir.Call{Op: weir.OpTake, Requests: []weir.Request{rule.For("k", cost)}}
			if draw.IntN(10) == 0 {
				call.Op, call.Most = weir.OpTakeUpTo, 3
			}
			a, err := l.Do(context.Background(), call)
			if err == nil && a.Decision.Allowed && (call.Op == weir.OpTake || a.Times > 0) {
				h.mu.Lock()
				h.admitted[rule.Name()] = append(h.admitted[rule.Name()], admission{began, time.Now(), cost * max(a.Times, 1)})
				h.mu.Unlock()
			}
		}
		time.Sleep(time.Duration(draw.Int64N(int64(40 * time.Millisecond))))
	}
}

// breakLink has faults come and go. An engine that is punctual does not hang.
func (h *history) breakLink(r *remote, draw *rand.Rand) {
	for range 8 {
		time.Sleep(time.Duration(draw.Int64N(int64(600 * time.Millisecond))))
		heal := func() {}
		switch fault := draw.IntN(6); {
		case fault == 0:
			r.fails.Store(true)
		case fault == 1:
			r.loses.Store(true)
		case fault == 2:
			r.slow.Store(int64(50 * time.Millisecond))
		case fault == 3 && !r.punctual:
			r.trip.Store(draw.Int64N(int64(300 * time.Millisecond)))
		case fault == 4 && !r.punctual:
			heal = r.hangs()
		case fault == 5:
			r.panics.Store(true)
		}
		time.Sleep(time.Duration(draw.Int64N(int64(800 * time.Millisecond))))
		heal()
		r.fails.Store(false)
		r.loses.Store(false)
		r.panics.Store(false)
		r.slow.Store(0)
		r.trip.Store(0)
	}
}

// recover waits until everything is recorded and given back, and nothing hangs.
func (h *history) recover() {
	for _, l := range h.prefetches {
		l.Close()
	}
	time.Sleep(3 * time.Second)
	free := mustRule(h.t, "free=unlimited")
	for range 4 { // the probes that close a breaker
		for _, g := range h.guards {
			_, _ = g.Take(context.Background(), free.For("k", 1))
		}
		time.Sleep(300 * time.Millisecond)
	}
	for i, g := range h.guards {
		if s := g.Stats(); s.Away || s.Owed != 0 || s.Queued != 0 || s.Hanging != 0 {
			h.t.Errorf("process %d after all faults: %+v, want the engine back and nothing owed", i, s)
		}
		g.Close()
	}
	for i, l := range h.prefetches {
		if s := l.Stats(); s.Out != 0 {
			h.t.Errorf("process %d after all faults: %+v, want nothing taken ahead", i, s)
		}
	}
}

// check compares the admissions of a rule in every stretch of time with the bound.
func (h *history) check(r *historyRule, processes int64) {
	all := h.admitted[mustRule(h.t, r.text).Name()]
	slices.SortFunc(all, func(a, b admission) int { return a.began.Compare(b.began) })
	for i := range all {
		inside := slices.Clone(all[i:])
		slices.SortFunc(inside, func(a, b admission) int { return a.ended.Compare(b.ended) })
		sum := int64(0)
		for _, a := range inside {
			sum += a.cost
			stretch := a.ended.Sub(all[i].began)
			if bound := h.bound(r, processes, all[i].began, stretch); sum > bound {
				h.t.Fatalf("%s, policy %s, %d processes: %d admitted within %v, want at most %d", r.text, h.policy, processes, sum, stretch, bound)
			}
		}
	}
}

// bound returns the most units that a stretch may admit: those of the engine, of prefetches and of local shares.
func (h *history) bound(r *historyRule, processes int64, began time.Time, stretch time.Duration) (most int64) {
	once := func(burst, count int64) int64 {
		switch {
		case r.sliding && stretch < r.period:
			return count
		case r.sliding:
			return count * (int64(stretch/r.period) + 1)
		case r.windowed:
			at := began.UnixNano() - int64(r.phase)
			windows := (at+int64(stretch))/int64(r.period) - at/int64(r.period) + 1
			return count * windows
		}
		return burst + int64(stretch)*count/int64(r.period)
	}
	most = once(r.burst, r.count)
	if r.ahead && !r.windowed { // a stock of a window is not used beyond it
		most += processes * max(r.burst/10, 1)
	}
	if h.policy == layer.Local {
		most += processes * once(max(1, r.burst/processes), max(1, r.count/processes))
	}
	return most
}
