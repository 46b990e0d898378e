// Package measure runs the peers with the workload and collects the results. Start with Run. It returns an error, not
// a figure, if the workload differs from its definition.
package measure

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

// Config selects what to run.
type Config struct {
	Singles     []peers.SinglePeer
	Keyeds      []peers.KeyedPeer
	Mixes       []*workload.Mix
	All         bool // also run Brief peers with many keys
	Repetitions int
	Duration    time.Duration // of each measurement, except those of fresh keys
	Cores       []int
	Memory      bool // also measure bytes per key, collections and worst decisions
	MemoryKeys  int  // keys of every peer
	LargeKeys   int  // keys of Weir's compact peers
	Waiting     bool // also measure waiting callers
	LateTurns   int  // turns whose lateness is measured
	Progress    func(format string, values ...any)
}

// leavesOut reports whether a peer is not measured with this number of keys.
func (c *Config) leavesOut(peer peers.KeyedPeer, keys int) bool {
	return peer.Brief && !c.All && keys > fewKeys
}

const fewKeys = 100_000

// SingleMix is the name of the mix for limiters of one subject.
const SingleMix = "one limiter"

// Cell identifies a figure.
type Cell struct {
	Peer   string
	Mix    string
	Denied bool
	Cores  int
}

// Sample is one measurement.
type Sample struct {
	NsPerOp, AllocsPerOp, BytesPerOp float64
	ProcessorNsPerOp                 float64 // without the time in which other processes ran
	Ops                              int64
	Distinct                         int
	Unexpected                       float64 // share of calls with an unexpected result
}

// Results are all figures of a run.
type Results struct {
	Config     Config
	Cells      map[Cell][]Sample
	Footprints []Footprint
	Latencies  []Latency
	Waiting    *Waiting
	Took       time.Duration
}

// Run measures everything, repetition by repetition: each peer once, then all again.
func Run(c Config) (*Results, error) {
	start := time.Now()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	r := &Results{Config: c, Cells: map[Cell][]Sample{}}
	for repetition := range c.Repetitions {
		c.Progress("repetition %d of %d", repetition+1, c.Repetitions)
		if err := r.singles(); err != nil {
			return nil, err
		}
		if err := r.keyeds(repetition); err != nil {
			return nil, err
		}
	}
	runtime.GOMAXPROCS(runtime.NumCPU())
	if c.Memory {
		if err := r.memory(); err != nil {
			return nil, err
		}
	}
	if c.Waiting {
		if err := r.waiting(); err != nil {
			return nil, err
		}
	}
	r.Took = time.Since(start)
	return r, nil
}

// Series returns the time of a decision in ns, by repetition.
func (r *Results) Series(c Cell) Series {
	samples := r.Cells[c]
	series := make(Series, len(samples))
	for i, s := range samples {
		series[i] = s.NsPerOp
	}
	return series
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

// calls ends a measurement after most decisions of each worker.
func calls(most int) until {
	return func(_ time.Time, ops int64) bool { return ops+batch > int64(most) }
}

// parallel runs one worker per core until it may stop.
func parallel(cores int, end until, work func(worker int, stop func(ops int64) bool) counts) (Sample, counts) {
	var before, after runtime.MemStats
	runtime.GOMAXPROCS(cores)
	each := make([]counts, cores)
	var workers sync.WaitGroup
	runtime.ReadMemStats(&before)
	start, used := time.Now(), processorTime()
	stop := func(ops int64) bool { return end(start, ops) }
	for worker := range cores {
		workers.Go(func() { each[worker] = work(worker, stop) })
	}
	workers.Wait()
	took := time.Since(start)
	used = processorTime() - used
	runtime.ReadMemStats(&after)
	var all counts
	for _, one := range each {
		all.ops += one.ops
		all.admitted += one.admitted
		all.errors += one.errors
	}
	ops := float64(all.ops)
	return Sample{
		NsPerOp:          float64(took) / ops,
		AllocsPerOp:      float64(after.Mallocs-before.Mallocs) / ops,
		BytesPerOp:       float64(after.TotalAlloc-before.TotalAlloc) / ops,
		ProcessorNsPerOp: float64(used) / ops,
		Ops:              all.ops,
	}, all
}

// processorTime returns the time for which this process has run.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // cannot fail for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// judge checks that every call had the expected result.
func (s *Sample) judge(info peers.Info, c Cell, all counts) error {
	if info.Kind == peers.Harness {
		return nil
	}
	unexpected := all.ops - all.admitted
	if c.Denied {
		unexpected = all.admitted + all.errors
	}
	s.Unexpected = float64(unexpected) / float64(all.ops)
	if s.Unexpected > info.Tolerated {
		return fmt.Errorf("%+v: %d calls, %d admitted, %d errors: the workload differs from its definition", c, all.ops, all.admitted, all.errors)
	}
	return nil
}
