package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/workload"
)

// figure is what was measured of a kind.
type figure struct {
	kind
	bytes               float64 // of the heap, for one key
	collection          collections
	save, load          float64 // million keys a second
	growing, forgetting times
	evicted             int
}

// together returns the medians of the rounds of a kind, and the longest of what is a longest time. The evicted keys are
// those of the first round.
func together(rounds []figure) figure {
	f := rounds[0]
	f.bytes = median(rounds, func(r figure) float64 { return r.bytes })
	f.save = median(rounds, func(r figure) float64 { return r.save })
	f.load = median(rounds, func(r figure) float64 { return r.load })
	f.collection.median = median(rounds, func(r figure) time.Duration { return r.collection.median })
	f.growing = timesOf(rounds, func(r figure) times { return r.growing })
	f.forgetting = timesOf(rounds, func(r figure) times { return r.forgetting })
	for _, r := range rounds {
		f.collection.longest = max(f.collection.longest, r.collection.longest)
		f.collection.pause = max(f.collection.pause, r.collection.pause)
	}
	return f
}

func timesOf(rounds []figure, of func(figure) times) (t times) {
	t.median = median(rounds, func(r figure) time.Duration { return of(r).median })
	t.p9999 = median(rounds, func(r figure) time.Duration { return of(r).p9999 })
	for _, r := range rounds {
		t.longest = max(t.longest, of(r).longest)
	}
	return t
}

func median[T cmp.Ordered](rounds []figure, of func(figure) T) T {
	all := make([]T, len(rounds))
	for i, r := range rounds {
		all[i] = of(r)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// collections are the times of full collections, and the longest time for which one stopped all goroutines.
type collections struct{ median, longest, pause time.Duration }

// times are those of single decisions, including two readings of the clock.
type times struct{ median, p9999, longest time.Duration }

// filled is an engine under measurement, on a clock that stands until it is set.
type filled struct {
	now    int64
	engine *weir.Memory
	rule   *weir.Rule
}

func (f *filled) clock() int64 { return f.now }

func (f *filled) options(keys int) weir.MemoryOptions {
	return weir.MemoryOptions{Clock: f.clock, MaxKeys: 4 * keys}
}

func measure(k kind, draws *workload.Sequence, keys int, space []uint32) (figure, error) {
	f := figure{kind: k}
	rule, err := weir.NewRule("r", k.limits...)
	if err != nil {
		return f, err
	}
	before := heap()
	e := &filled{now: 1_700_000_000_000_000_000, rule: rule}
	e.engine = weir.NewMemory(e.options(keys))
	taken, err := e.take(draws, 0, keys, space)
	if err != nil {
		return f, err
	}
	f.growing = spread(taken)
	f.bytes = (heap() - before) / float64(keys)
	f.collection = collect()
	if got := e.engine.Stats().Keys; got != keys*len(k.limits) {
		return f, fmt.Errorf("the engine has %d states of %d keys", got, keys)
	}
	if err := f.saveAndLoad(e, draws, keys); err != nil {
		return f, err
	}
	return f, f.forget(e, draws, keys, space)
}

// take takes one unit of each new key, which must be admitted, and times each decision.
func (e *filled) take(draws *workload.Sequence, from, count int, space []uint32) ([]uint32, error) {
	ctx := context.Background()
	for i := range count {
		request := e.rule.For(draws.Key(from+i), 1)
		start := time.Now()
		d, err := e.engine.Take(ctx, request)
		space[i] = uint32(min(time.Since(start), math.MaxUint32))
		if err != nil || !d.Allowed {
			return nil, fmt.Errorf("key %d: a new key is refused: %+v, %v", from+i, d, err)
		}
	}
	return space[:count], nil
}

// saveAndLoad saves the engine, loads it, and compares the answers for some keys.
func (f *figure) saveAndLoad(e *filled, draws *workload.Sequence, keys int) error {
	file := bytes.NewBuffer(make([]byte, 0, (int(f.most)+20)*keys))
	start := time.Now()
	if err := e.engine.Save(file); err != nil {
		return err
	}
	f.save = speed(keys, start)
	start = time.Now()
	loaded, err := weir.LoadMemory(bytes.NewReader(file.Bytes()), e.options(keys))
	if err != nil {
		return err
	}
	f.load = speed(keys, start)
	if got, want := loaded.Stats().Keys, e.engine.Stats().Keys; got != want {
		return fmt.Errorf("%d states were saved, %d loaded", want, got)
	}
	for i := 0; i < keys; i += 1 + keys/10_000 {
		want, _ := e.engine.Peek(context.Background(), e.rule.For(draws.Key(i), 1))
		if got, err := loaded.Peek(context.Background(), e.rule.For(draws.Key(i), 1)); err != nil || got != want || got.ResetAfter == 0 {
			return fmt.Errorf("key %d: the loaded engine answers %+v, %v, the saved one %+v", i, got, err, want)
		}
	}
	return nil
}

// forget lets all keys become idle, and takes from new keys, which makes the engine evict the idle ones.
func (f *figure) forget(e *filled, draws *workload.Sequence, keys int, space []uint32) error {
	e.now += int64(72 * time.Hour)
	before := e.engine.Stats().Evicted
	taken, err := e.take(draws, keys, keys/2, space)
	if err != nil {
		return err
	}
	f.forgetting = spread(taken)
	f.evicted = int(e.engine.Stats().Evicted - before)
	if f.evicted < keys/4 {
		return fmt.Errorf("only %d of %d idle keys were evicted", f.evicted, keys)
	}
	return nil
}

// bareLoop times nothing, as often as decisions are timed. It shows the delays of the machine.
func bareLoop(space []uint32) []uint32 {
	for i := range space {
		start := time.Now()
		space[i] = uint32(min(time.Since(start), math.MaxUint32))
	}
	return space
}

func spread(all []uint32) times {
	slices.Sort(all)
	at := func(share float64) time.Duration { return time.Duration(all[int(share*float64(len(all)-1))]) }
	return times{at(0.5), at(0.9999), at(1)}
}

func speed(keys int, start time.Time) float64 {
	return float64(keys) / time.Since(start).Seconds() / 1e6
}

// heap returns the bytes of the heap after a collection.
func heap() float64 {
	runtime.GC() // twice: the second frees what finalizers released
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// collect times full collections, one after the other.
func collect() collections {
	var all [31]time.Duration
	for i := range all {
		start := time.Now()
		runtime.GC()
		all[i] = time.Since(start)
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	pause := uint64(0)
	for i := range uint32(len(all)) {
		pause = max(pause, stats.PauseNs[(stats.NumGC-1-i)%uint32(len(stats.PauseNs))])
	}
	slices.Sort(all[:])
	return collections{all[len(all)/2], all[len(all)-1], time.Duration(pause)}
}
