// Package measure runs the peers over the workload and keeps what it found.
// Start with Run. A workload that was not what it had to be is an error, and
// not a figure.
package measure

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

// Config says what is run.
type Config struct {
	Singles     []peers.SinglePeer
	Keyeds      []peers.KeyedPeer
	Mixes       []*workload.Mix
	All         bool // ask brief peers about many keys as well
	Repetitions int
	Duration    time.Duration // of each measurement, but of fresh keys
	Cores       []int
	Memory      bool // also bytes a key, collections and worst decisions
	MemoryKeys  int  // so many for all peers
	LargeKeys   int  // and so many for those of ours that are compact
	Waiting     bool // also callers who wait
	LateTurns   int  // turns whose lateness is measured
	Progress    func(format string, values ...any)
}

// leavesOut says whether a peer is not asked about so many keys.
func (c *Config) leavesOut(peer peers.KeyedPeer, keys int) bool {
	return peer.Brief && !c.All && keys > fewKeys
}

const fewKeys = 100_000

// SingleMix is the name of the mix of limiters of one subject.
const SingleMix = "one limiter"

// Cell is what one figure is about.
type Cell struct {
	Peer   string
	Mix    string
	Denied bool
	Cores  int
}

// Sample is one measurement.
type Sample struct {
	NsPerOp, AllocsPerOp, BytesPerOp float64
	Ops                              int64
	Distinct                         int
	Unexpected                       float64 // share of calls that ended otherwise than they must
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

// Run measures everything, repetition after repetition: each peer once, then
// again from the first.
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

// Series is the time of a decision in ns, by repetition.
func (r *Results) Series(c Cell) Series {
	samples := r.Cells[c]
	series := make(Series, len(samples))
	for i, s := range samples {
		series[i] = s.NsPerOp
	}
	return series
}

// counts is what one worker did.
type counts struct{ ops, admitted, errors int64 }

// batch is how many decisions a worker makes between two looks at the clock.
const batch = 256

// until says whether a worker that has decided so often since the start may
// stop. It is asked after each batch.
type until func(start time.Time, ops int64) bool

// after ends a measurement after a time.
func after(d time.Duration) until {
	return func(start time.Time, _ int64) bool { return time.Since(start) >= d }
}

// calls ends a measurement after so many decisions of each worker.
func calls(most int) until {
	return func(_ time.Time, ops int64) bool { return ops+batch > int64(most) }
}

// parallel lets one worker a core run until it may stop.
func parallel(cores int, end until, work func(worker int, stop func(ops int64) bool) counts) (Sample, counts) {
	var before, after runtime.MemStats
	runtime.GOMAXPROCS(cores)
	each := make([]counts, cores)
	var workers sync.WaitGroup
	runtime.ReadMemStats(&before)
	start := time.Now()
	stop := func(ops int64) bool { return end(start, ops) }
	for worker := range cores {
		workers.Go(func() { each[worker] = work(worker, stop) })
	}
	workers.Wait()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	var all counts
	for _, one := range each {
		all.ops += one.ops
		all.admitted += one.admitted
		all.errors += one.errors
	}
	ops := float64(all.ops)
	return Sample{
		NsPerOp:     float64(took) / ops,
		AllocsPerOp: float64(after.Mallocs-before.Mallocs) / ops,
		BytesPerOp:  float64(after.TotalAlloc-before.TotalAlloc) / ops,
		Ops:         all.ops,
	}, all
}

// judge says whether every call ended as it had to.
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
		return fmt.Errorf("%+v: %d calls, %d admitted, %d errors: the workload is not what it has to be", c, all.ops, all.admitted, all.errors)
	}
	return nil
}
