package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

// singleMix has the limits of limiters of one subject.
var singleMix = &workload.Mix{Name: "one limiter", Keys: 1, LogPeriod: time.Microsecond}

// column names an outcome on a number of cores.
func column(denied bool, cores int) string {
	if denied {
		return fmt.Sprintf("denied, %d core(s)", cores)
	}
	return fmt.Sprintf("allowed, %d core(s)", cores)
}

// cores are those on which decisions are measured. Beside a busy process it is one: the processor's time of one caller does not
// count that of others, while the time that passes would.
func cores() []int {
	if runtime.NumCPU() > 1 && busy == nil {
		return []int{1, 2}
	}
	return []int{1}
}

func limitOf(mix *workload.Mix, denied bool) peers.Limit {
	if denied {
		return mix.Denied()
	}
	return mix.Allowed()
}

func row(peer peers.Peer, group, column string, measured func(context.Context, *measure.Options) (measure.Figures, error)) measure.Row {
	return measure.Row{Group: group, Line: peer.Name, Column: column, Ours: peer.Kind == peers.Ours, Measure: measured}
}

// current is the limiter of the latest row and the first of the rows that share it, because it takes long to fill.
var current struct {
	owner any
	peers.Limiter
}

// share returns the owner's limiter. It stops that of another owner.
func share(owner any, construct func() (peers.Limiter, error)) (peers.Limiter, error) {
	if current.owner != owner {
		current.Stop()
		current.owner, current.Limiter = nil, peers.Limiter{}
		made, err := construct()
		if err != nil {
			return made, err
		}
		runtime.GC()
		current.owner, current.Limiter = owner, made
	}
	return current.Limiter, nil
}

// rowsOf returns the rows of a peer that share a limiter.
func rowsOf(peer peers.Peer, group []*workload.Mix, denied bool) (list []measure.Row) {
	owner := new(int)
	for _, mix := range group {
		for _, cores := range cores() {
			measured := measureKnown(owner, peer, mix, denied, cores)
			if mix.Fresh {
				measured = measureFresh(peer, mix, cores)
			}
			list = append(list, row(peer, mix.Name, column(denied, cores), measured))
		}
	}
	return list
}

// measureKnown measures decisions on keys that the peer knows, after a short run-in. Each turn starts at another place of
// the sequences.
func measureKnown(owner any, peer peers.Peer, mix *workload.Mix, denied bool, cores int) func(context.Context, *measure.Options) (measure.Figures, error) {
	turn := 0
	return func(_ context.Context, o *measure.Options) (measure.Figures, error) {
		made, err := share(owner, func() (peers.Limiter, error) { return newKeyed(peer, mix, denied) })
		if err != nil {
			return nil, err
		}
		sequences := mix.Sequences()
		position := turn * 7919 * batch
		turn++
		ask := func(worker int, stop until) counts { return askKeyed(made, sequences[worker], position, stop) }
		runIn := parallel(cores, after(o.Window/4), ask)
		position += int(slices.Max(runIn.each)) // the run-in has brought the keys before it into the caches
		got := parallel(cores, after(o.Window), ask)
		if err := checkDistinct(mix, sequences, position, got.each); err != nil {
			return nil, err
		}
		return got.figures(peer, denied)
	}
}

// newKeyed returns a peer that knows the keys of a mix.
func newKeyed(peer peers.Peer, mix *workload.Mix, denied bool) (peers.Limiter, error) {
	made, err := peer.New(limitOf(mix, denied))
	if err != nil {
		return made, err
	}
	return made, errors.Join(fill(made, 0, mix.Keys), remembers(made, mix.Keys))
}

// fill takes one unit of each key. Each key is a string of its own, so the peer alone keeps it alive.
func fill(peer peers.Limiter, first, keys int) error {
	for i := range keys {
		if ok, err := peer.Take(workload.Key(first + i)); err != nil || !ok {
			return fmt.Errorf("the first call of key %d was refused: %v", first+i, err)
		}
	}
	return nil
}

// remembers checks the number of keys of a peer that reports it.
func remembers(peer peers.Limiter, want int) error {
	if peer.Len != nil && peer.Len() != want {
		return fmt.Errorf("remembers %d keys, want %d", peer.Len(), want)
	}
	return nil
}

// measureFresh measures decisions of a new peer on keys that never repeat.
func measureFresh(peer peers.Peer, mix *workload.Mix, cores int) func(context.Context, *measure.Options) (measure.Figures, error) {
	return func(context.Context, *measure.Options) (measure.Figures, error) {
		made, err := share(new(int), func() (peers.Limiter, error) { return peer.New(mix.Allowed()) })
		if err != nil {
			return nil, err
		}
		sequence := mix.Sequences()[0]
		part := sequence.Len() / cores
		got := parallel(cores, func(_ time.Time, ops int64) bool { return ops+batch > int64(part) }, func(worker int, stop until) counts {
			return askKeyed(made, sequence, worker*part, stop)
		})
		if err := remembers(made, int(got.ops)); err != nil {
			return nil, err
		}
		return got.figures(peer, false)
	}
}

// askKeyed makes decisions on the keys of a sequence from a position on.
func askKeyed(peer peers.Limiter, s *workload.Sequence, position int, stop until) counts {
	position %= s.Len()
	return decide(stop, func() (bool, error) {
		key := s.Key(position)
		if position++; position == s.Len() {
			position = 0
		}
		return peer.Take(key)
	})
}

// checkDistinct checks that the workers used as many distinct keys as the mix promises.
func checkDistinct(mix *workload.Mix, sequences []*workload.Sequence, position int, done []int64) error {
	seen := make([]uint64, mix.Keys/64+1)
	draws, distinct := 0, 0
	for worker, ops := range done {
		sequence := sequences[worker]
		sequence.Mark(seen, position%sequence.Len(), int(ops))
		draws += min(int(ops), sequence.Len())
	}
	for _, word := range seen {
		distinct += bits.OnesCount64(word)
	}
	want := mix.Distinct(draws)
	if math.Abs(float64(distinct)-want) > 0.02*want+5*math.Sqrt(want) {
		return fmt.Errorf("%d draws asked about %d keys, want %.0f ± 2 %% and what is chance", draws, distinct, want)
	}
	return nil
}

// counts are the calls of one worker.
type counts struct{ ops, admitted, errors int64 }

// batch is the number of decisions between two readings of the clock.
const batch = 256

// until reports whether a worker may stop after ops decisions. Workers call it after each batch.
type until func(start time.Time, ops int64) bool

// after ends a measurement after a time.
func after(d time.Duration) until {
	return func(start time.Time, _ int64) bool { return time.Since(start) >= d }
}

func decide(stop until, take func() (bool, error)) (c counts) {
	start := time.Now()
	for c.ops == 0 || !stop(start, c.ops) {
		for range batch {
			ok, err := take()
			if ok {
				c.admitted++
			}
			if err != nil {
				c.errors++
			}
		}
		c.ops += batch
	}
	return c
}

// window is what all workers did in a measurement.
type window struct {
	counts
	each               []int64 // calls by worker
	took               time.Duration
	mallocs, processor float64
}

// parallel runs one worker per core until it may stop.
func parallel(cores int, end until, work func(worker int, stop until) counts) (w window) {
	var before, after runtime.MemStats
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	all := make([]counts, cores)
	var workers sync.WaitGroup
	runtime.ReadMemStats(&before)
	start, used := time.Now(), measure.ProcessorTime()
	for worker := range cores {
		workers.Go(func() { all[worker] = work(worker, end) })
	}
	workers.Wait()
	w.took, w.processor = time.Since(start), float64(measure.ProcessorTime()-used)
	runtime.ReadMemStats(&after)
	w.mallocs = float64(after.Mallocs - before.Mallocs)
	for _, one := range all {
		w.ops, w.admitted, w.errors = w.ops+one.ops, w.admitted+one.admitted, w.errors+one.errors
		w.each = append(w.each, one.ops)
	}
	return w
}

// allocations is the figure of targets, which tables show if it is not 0.
const allocations = "allocations of all"

// figures checks that every call had the expected result.
func (w window) figures(peer peers.Peer, denied bool) (measure.Figures, error) {
	unexpected := w.ops - w.admitted
	if denied {
		unexpected = w.admitted + w.errors
	}
	if peer.Kind != peers.Harness && float64(unexpected)/float64(w.ops) > peer.Tolerated {
		return nil, fmt.Errorf("%d calls, %d admitted, %d errors: the workload differs from its definition", w.ops, w.admitted, w.errors)
	}
	n := float64(w.ops)
	f := measure.Figures{"ns": float64(w.took) / n, allocations: w.mallocs / n}
	if len(w.each) == 1 {
		f["ns"] = w.processor / n
	}
	if f[allocations] >= 0.005 {
		f["allocations"] = f[allocations]
	}
	return f, nil
}
