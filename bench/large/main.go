// Command large fills the memory engine with ten million keys of each kind of entry. It measures their memory, full
// collections, a save, a load, and each decision while the engine grows and while it evicts idle keys. A run whose
// workload differs from its description fails.
//
//	go run ./bench/large               writes bench/LARGE.md
//	go run ./bench/large -keys 100000 -reps 1 -o -    tries it out
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/workload"
)

var keys int

const group = "entries"

// kind is a kind of entry, and the most bytes that a key may take.
type kind struct {
	name   string
	limits []weir.Limit
	most   float64
}

var kinds = []kind{
	{"one word: 10/s", []weir.Limit{weir.TokenBucket{Rate: weir.PerSecond(10)}}, 28},
	{"one word: fixed window 100/d", []weir.Limit{weir.FixedWindow{Rate: weir.PerDay(100)}}, 28},
	{"one word: cycle 100/d", []weir.Limit{weir.Cycle{Rate: weir.PerDay(100)}}, 28},
	{"fine fraction: 333/s", []weir.Limit{weir.TokenBucket{Rate: weir.PerSecond(333)}}, 40},
	{"two limits: 5/m and 100/d", []weir.Limit{weir.TokenBucket{Rate: weir.PerMinute(5)}, weir.TokenBucket{Rate: weir.PerDay(100)}}, 44},
}

func main() { bench.Main() }

var bench = &measure.Bench{
	Program: "bench/large", Title: "Ten million keys of each kind of entry", Report: "bench/LARGE.md", Reps: 3,
	About: `The engine takes one unit of each key. Bytes are the growth of the heap after a collection. Collections are 31 full ones, one after
the other; a pause stops all goroutines. A save goes to memory, and a load comes from there. Decisions are timed one by one: those
on new keys while the engine grows, and those on half as many new keys while all earlier keys are idle and are evicted.`,
	Flags: func(flags *flag.FlagSet) {
		flags.IntVar(&keys, "keys", 10_000_000, "number of keys of each kind, up to 60 million")
	},
	Rows: rows,
	Columns: []measure.Column{
		{Figure: bytesAKey, Format: "%.1f"}, {Figure: collection, Format: "%.2f"}, {Figure: "worst collection ms", Format: "%.2f"}, {Figure: "worst pause ms", Format: "%.2f"},
		{Figure: saved, Format: "%.1f"}, {Figure: loaded, Format: "%.1f"}, {Figure: "growing median ns", Format: "%.0f"}, {Figure: growing, Format: "%.0f"}, {Figure: "growing worst µs", Format: "%.0f"},
		{Figure: "evicting median ns", Format: "%.0f"}, {Figure: evicting, Format: "%.0f"}, {Figure: "evicting worst µs", Format: "%.0f"}, {Figure: "evicted", Format: "%.0f"},
	},
	Targets: targets,
}

// The figures that have aims.
const (
	bytesAKey  = "bytes a key"
	collection = "collection ms"
	saved      = "save, M keys/s"
	loaded     = "load, M keys/s"
	growing    = "growing p99.99 µs"
	evicting   = "evicting p99.99 µs"
)

func rows(o *measure.Options) (list []measure.Row, err error) {
	if o.Quick {
		keys /= 20
	}
	draws := workload.Fresh(0, keys+keys/2) // the second part is of new keys
	for _, k := range kinds {
		list = append(list, measure.Row{Group: group, Line: k.name, Measure: func(context.Context, *measure.Options) (measure.Figures, error) {
			return k.measure(draws)
		}})
	}
	return append(list, measure.Row{Group: group, Line: "nothing at all", Measure: func(context.Context, *measure.Options) (measure.Figures, error) {
		f := measure.Figures{}
		return f, timed(f, "growing", keys, func(int) error { return nil })
	}}), nil
}

func targets([]measure.Row) (list []measure.Target) {
	for _, k := range kinds {
		list = append(list, measure.Target{Name: bytesAKey + ", " + k.name, Figure: bytesAKey, Format: "%.1f", Bound: k.most, Cases: []measure.Case{{Row: k.name + ", " + group}}})
	}
	for _, t := range []measure.Target{
		{Figure: collection, Format: "%.2f", Bound: 3}, {Figure: saved, Format: "%.1f", Bound: 2, AtLeast: true}, {Figure: loaded, Format: "%.1f", Bound: 2, AtLeast: true},
		{Figure: growing, Format: "%.0f", Bound: 100}, {Figure: evicting, Format: "%.0f", Bound: 100},
	} {
		t.Name = t.Figure
		for _, k := range kinds {
			t.Cases = append(t.Cases, measure.Case{Row: k.name + ", " + group})
		}
		list = append(list, t)
	}
	return list
}

// filled is an engine under measurement, on a clock that stands until it is set.
type filled struct {
	now    int64
	engine *weir.Memory
	rule   *weir.Rule
	draws  *workload.Sequence
}

func (e *filled) options() weir.MemoryOptions {
	return weir.MemoryOptions{Clock: func() int64 { return e.now }, MaxKeys: 4 * keys}
}

func (k kind) measure(draws *workload.Sequence) (measure.Figures, error) {
	rule, err := weir.NewRule("r", k.limits...)
	if err != nil {
		return nil, err
	}
	before, _ := measure.Memory()
	e := &filled{now: 1_700_000_000_000_000_000, rule: rule, draws: draws}
	e.engine = weir.NewMemory(e.options())
	f := measure.Figures{}
	if err := e.take(f, "growing", 0, keys); err != nil {
		return nil, err
	}
	after, _ := measure.Memory()
	f[bytesAKey] = (after - before) / float64(keys)
	collect(f)
	if got := e.engine.Stats().Keys; got != keys*len(k.limits) {
		return nil, fmt.Errorf("the engine has %d states of %d keys", got, keys)
	}
	if err := e.saveAndLoad(f); err != nil {
		return nil, err
	}
	e.now += int64(72 * time.Hour) // all keys become idle, and new keys make the engine evict them
	if err := e.take(f, "evicting", keys, keys/2); err != nil {
		return nil, err
	}
	if f["evicted"] = float64(e.engine.Stats().Evicted); f["evicted"] < float64(keys/4) {
		return nil, fmt.Errorf("only %v of %d idle keys were evicted", f["evicted"], keys)
	}
	return f, nil
}

// take takes one unit of each new key, which must be admitted.
func (e *filled) take(f measure.Figures, phase string, from, count int) error {
	ctx := context.Background()
	return timed(f, phase, count, func(i int) error {
		d, err := e.engine.Take(ctx, e.rule.For(e.draws.Key(from+i), 1))
		if err != nil || !d.Allowed {
			return fmt.Errorf("key %d: a new key is refused: %+v, %v", from+i, d, err)
		}
		return nil
	})
}

// saveAndLoad saves the engine, loads it, and compares the answers for some keys.
func (e *filled) saveAndLoad(f measure.Figures) error {
	file := bytes.NewBuffer(make([]byte, 0, 64*keys))
	start := time.Now()
	if err := e.engine.Save(file); err != nil {
		return err
	}
	f[saved] = speed(start)
	start = time.Now()
	again, err := weir.LoadMemory(bytes.NewReader(file.Bytes()), e.options())
	if err != nil {
		return err
	}
	f[loaded] = speed(start)
	if got, want := again.Stats().Keys, e.engine.Stats().Keys; got != want {
		return fmt.Errorf("%d states were saved, %d loaded", want, got)
	}
	for i := 0; i < keys; i += 1 + keys/10_000 {
		want, _ := e.engine.Peek(context.Background(), e.rule.For(e.draws.Key(i), 1))
		if got, err := again.Peek(context.Background(), e.rule.For(e.draws.Key(i), 1)); err != nil || got != want || got.ResetAfter == 0 {
			return fmt.Errorf("key %d: the loaded engine answers %+v, %v, the saved one %+v", i, got, err, want)
		}
	}
	return nil
}

func speed(start time.Time) float64 { return float64(keys) / time.Since(start).Seconds() / 1e6 }

// timed times each call, including two readings of the clock.
func timed(f measure.Figures, phase string, count int, call func(i int) error) error {
	all := make([]uint32, count)
	for i := range all {
		start := time.Now()
		err := call(i)
		all[i] = uint32(min(time.Since(start), math.MaxUint32))
		if err != nil {
			return err
		}
	}
	slices.Sort(all)
	at := func(share float64) float64 { return float64(all[int(share*float64(count-1))]) }
	f[phase+" median ns"], f[phase+" p99.99 µs"], f[phase+" worst µs"] = at(0.5), at(0.9999)/1000, at(1)/1000
	return nil
}

// collect times full collections.
func collect(f measure.Figures) {
	all := measure.Collections(31)
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	pause := uint64(0)
	for i := range uint32(len(all)) {
		pause = max(pause, stats.PauseNs[(stats.NumGC-1-i)%uint32(len(stats.PauseNs))])
	}
	_, worst := all.Range()
	f[collection], f["worst collection ms"], f["worst pause ms"] = all.Median(), worst, float64(pause)/1e6
}
