package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// world is the engine under test, its clock and all counts. All calls go through it, so that the run can replace the
// engine between calls.
type world struct {
	config  *config
	now     atomic.Int64
	highest int64 // reading of the clock; the controller's
	rules   map[string]*rule

	mu      sync.RWMutex // held for reading during calls
	engine  *weir.Memory
	older   []byte                    // an earlier save, for a fault
	earlier map[string]weir.RuleStats // of replaced engines

	calls, saves, loads, forgotten, overflow atomic.Uint64
	worst                                    atomic.Int64 // ns of the slowest decision
	faulty                                   atomic.Uint64
	hoard                                    [][]byte // guarded by reports; for a fault

	reports sync.Mutex
	broken  atomic.Bool // the run ends with the first violation
}

// firstInstant is the first reading of the clock.
const firstInstant = 1_700_000_000_123_456_789

func newWorld(c *config, rules []*rule) *world {
	w := &world{config: c, rules: map[string]*rule{}, earlier: map[string]weir.RuleStats{}}
	for _, r := range rules {
		w.rules[r.Name()] = r
	}
	w.now.Store(firstInstant)
	w.highest = w.now.Load()
	w.engine = weir.NewMemory(w.options())
	return w
}

func (w *world) options() weir.MemoryOptions {
	o := weir.MemoryOptions{Clock: w.now.Load, MaxKeys: w.config.maxKeys}
	if w.config.Fault == roomAtCap {
		o.MaxKeys *= 8
	}
	return o
}

func (w *world) violated(format string, args ...any) {
	w.config.Break(agreement, "at %d: "+format, append([]any{w.now.Load()}, args...)...)
	w.broken.Store(true)
}

// ask makes one call on the engine and times it.
func (w *world) ask(verb string, call func(*weir.Memory) error) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	start := time.Now()
	err := call(w.engine)
	took := int64(time.Since(start))
	w.calls.Add(1)
	for worst := w.worst.Load(); took > worst && !w.worst.CompareAndSwap(worst, took); worst = w.worst.Load() {
	}
	if err != nil {
		w.violated("%s: %v", verb, err)
	}
	return err == nil
}

func (w *world) take(requests ...weir.Request) (d weir.Decision, ok bool) {
	ok = w.ask("take", func(m *weir.Memory) (err error) {
		d, err = m.Take(context.Background(), requests...)
		if err == nil {
			w.count(d, requests)
			w.lose(m, d, requests)
		}
		return err
	})
	if ok {
		w.sane("take", d, requests)
	}
	return d, ok
}

// takeEach makes one call with many decisions.
func (w *world) takeEach(requests []weir.Request) (results []weir.Result, ok bool) {
	results = make([]weir.Result, len(requests))
	ok = w.ask("take each", func(m *weir.Memory) error {
		err := m.Each(context.Background(), enginekit.Calls(weir.OpTake, requests...), results)
		for i := range results {
			if err = errors.Join(err, results[i].Err); err == nil {
				w.count(results[i].Decision, requests[i:i+1])
			}
		}
		return err
	})
	for i := range results {
		w.sane("take each", results[i].Decision, requests[i:i+1])
	}
	return results, ok
}

// reserve takes a cost and settles it at once on the same engine, because a reservation cannot follow when the run
// replaces the engine.
func (w *world) reserve(q weir.Request, actual int64) (allowed, ok bool) {
	ok = w.ask("reserve", func(m *weir.Memory) error {
		r, err := m.Reserve(context.Background(), q)
		if err != nil {
			return err
		}
		allowed = r.Decision.Allowed
		w.count(r.Decision, []weir.Request{q})
		if actual == 0 {
			return r.Cancel(context.Background())
		}
		return r.Settle(context.Background(), actual)
	})
	return allowed, ok
}

func (w *world) record(q weir.Request) (d weir.Decision, ok bool) {
	ok = w.ask("record", func(m *weir.Memory) (err error) {
		d, err = recordSigned(m, q)
		if w.config.Fault == doubleRecord && w.faulty.Add(1)%1000 == 0 {
			_, err = recordSigned(m, q)
		}
		return err
	})
	return d, ok
}

// recordSigned returns a negative cost.
func recordSigned(m *weir.Memory, q weir.Request) (weir.Decision, error) {
	if q.Cost < 0 {
		q.Cost = -q.Cost
		return m.Return(context.Background(), q)
	}
	return m.Record(context.Background(), q)
}

func (w *world) peek(requests ...weir.Request) (d weir.Decision, ok bool) {
	ok = w.ask("peek", func(m *weir.Memory) (err error) {
		d, err = m.Peek(context.Background(), requests...)
		return err
	})
	if ok {
		w.sane("peek", d, requests)
	}
	return d, ok
}

func (w *world) reset(requests ...weir.Request) bool {
	return w.ask("reset", func(m *weir.Memory) error { return m.Reset(context.Background(), requests...) })
}

// lose commits a fault: it removes what was admitted.
func (w *world) lose(m *weir.Memory, d weir.Decision, requests []weir.Request) {
	if w.config.Fault == lostTake && d.Allowed && w.faulty.Add(1)%1000 == 0 {
		q := requests[0]
		_, _ = m.Return(context.Background(), q)
	}
}

// count mirrors the engine's statistics during a call, while the engine cannot be replaced. No call repeats a rule
// and key.
func (w *world) count(d weir.Decision, requests []weir.Request) {
	for _, q := range requests {
		w.rules[q.Rule.Name()].decisions.Add(1)
	}
	if r := w.rules[d.Rule]; r == nil {
		w.violated("a decision names rule %q", d.Rule)
	} else if !d.Allowed {
		r.refusals.Add(1)
	}
}

// sane checks what holds for every decision.
func (w *world) sane(verb string, d weir.Decision, requests []weir.Request) {
	if d.Allowed != (d.RetryAfter == 0) || d.RetryAfter < 0 || d.ResetAfter < 0 || d.Remaining < 0 || d.Remaining > d.Limit || d.Delay < 0 {
		w.violated("%s %v: no decision is like %+v", verb, requests, d)
	}
}

// swap saves the engine and continues with the loaded one, between calls.
func (w *world) swap() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally(w.engine.Stats())
	var file bytes.Buffer
	if err := w.engine.Save(&file); err != nil {
		w.violated("save: %v", err)
		return
	}
	w.saves.Add(1)
	content := file.Bytes()
	if w.config.Fault == staleLoad {
		content, w.older = w.older, content
		if content == nil {
			content = w.older
		}
	}
	loaded, err := weir.LoadMemory(bytes.NewReader(content), w.options())
	if err != nil {
		w.violated("load: %v", err)
		return
	}
	w.loads.Add(1)
	w.engine = loaded
}

// saveBeside saves during calls. The file must be complete.
func (w *world) saveBeside() {
	var file bytes.Buffer
	w.mu.RLock()
	err := w.engine.Save(&file)
	w.mu.RUnlock()
	if err == nil {
		w.saves.Add(1)
		_, err = weir.LoadMemory(&file, w.options())
	}
	if err != nil {
		w.violated("a save beside decisions: %v", err)
		return
	}
	w.loads.Add(1)
}

// tally adds the statistics of a replaced engine and compares the sums with the run's counts. No worker is running.
func (w *world) tally(s weir.MemoryStats) {
	for _, r := range s.Rules {
		sum := w.earlier[r.Rule]
		sum.Decisions += r.Decisions
		sum.Refusals += r.Refusals
		sum.Overflow += r.Overflow
		w.earlier[r.Rule] = sum
	}
	w.forgotten.Add(s.Evicted)
	w.overflow.Add(s.Overflow)
	parts := 0
	for name, r := range w.rules {
		parts += len(r.limits)
		if got, want := w.earlier[name], r; got.Decisions != want.decisions.Load() || got.Refusals != want.refusals.Load() {
			w.violated("rule %q: the engine counts %d decisions and %d refusals, the callers %d and %d", name, got.Decisions, got.Refusals, want.decisions.Load(), want.refusals.Load())
		}
	}
	if most := parts * w.config.maxKeys; s.Keys > most && w.config.Fault != roomAtCap {
		w.violated("%d keys are remembered, above %d limits of %d", s.Keys, parts, w.config.maxKeys)
	}
}

// overflowOf returns how many requests under a rule the current engine decided on shared states.
func (w *world) overflowOf(r *rule) uint64 {
	for _, s := range w.engine.Stats().Rules {
		if s.Rule == r.Name() {
			return s.Overflow
		}
	}
	return 0
}

// step moves the clock by by ns, within the years of a 64-bit clock.
func (w *world) step(by int64) {
	const end = math.MaxInt64 - 4*int64(weir.MaxPeriod)
	if at := w.now.Load(); by <= 0 || at < end-by {
		w.now.Store(at + by)
	}
	w.highest = max(w.highest, w.now.Load())
}
