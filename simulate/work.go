package simulate

import (
	"cmp"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirflow/weir"
)

// work tries token buckets of one rate on the keys of a log, on all processors.
type work struct {
	search *search
	rate   weir.Rate
	needs  []need // the largest first
}

// need is the smallest burst that never refuses a key.
type need struct {
	key   int
	burst int64
}

// work finds what each key needs. It takes every event from a bucket that is larger than all of them together, and
// sees how much of it was ever missing.
func (s *search) work(rate weir.Rate) (*work, error) {
	w := &work{search: s, rate: rate, needs: make([]need, len(s.totals))}
	for key := range w.needs {
		w.needs[key].key = key
	}
	ample := max(s.largest, 1)
	err := w.each(ample, w.needs, func(try *trial, n *need) bool {
		n.burst = max(1, ample-try.least(n.key, ample))
		return true
	})
	slices.SortFunc(w.needs, func(a, b need) int {
		return cmp.Or(cmp.Compare(b.burst, a.burst), cmp.Compare(a.key, b.key))
	})
	return w, err
}

// above returns the keys that need more than a burst. The others are never refused.
func (w *work) above(burst int64) []need {
	n, _ := slices.BinarySearchFunc(w.needs, burst, func(n need, burst int64) int {
		if n.burst > burst {
			return -1
		}
		return 1
	})
	return w.needs[:n]
}

// refused counts refused requests. It stops above the budget.
func (w *work) refused(burst, budget int64) (int64, error) {
	var refused atomic.Int64
	err := w.each(burst, w.above(burst), func(try *trial, n *need) bool {
		try.key(n.key, func(allowed bool, _, _ int64) bool {
			return allowed || refused.Add(1) <= budget
		})
		return refused.Load() <= budget
	})
	return refused.Load(), err
}

// tradeOff measures a token bucket of this burst.
func (w *work) tradeOff(burst int64) (TradeOff, error) {
	found, others := TradeOff{Burst: burst}, seconds{}
	var mu sync.Mutex
	err := w.each(burst, w.above(burst), func(try *trial, n *need) bool {
		refused, in := int64(0), seconds{}
		try.key(n.key, func(allowed bool, at, cost int64) bool {
			if !allowed {
				refused++
				in.add(at, cost)
			}
			return true
		})
		if refused == 0 {
			return true
		}
		mu.Lock()
		defer mu.Unlock()
		found.Refused += refused
		found.KeysRefused++
		for second, units := range in {
			others[second] += units
		}
		return true
	})
	found.Peak = w.search.seconds.less(others)
	return found, err
}

// each calls f for every key, on all processors, until f returns false. The needs are those of f alone meanwhile.
func (w *work) each(burst int64, needs []need, f func(try *trial, n *need) bool) error {
	var next atomic.Int64
	var stopped atomic.Bool
	workers := min(runtime.GOMAXPROCS(0), max(1, len(needs)))
	failures := make([]error, workers)
	var running sync.WaitGroup
	for i := range workers {
		running.Go(func() {
			try, err := newTrial(w.search.traffic, weir.TokenBucket{Rate: w.rate, Burst: burst})
			if err != nil {
				failures[i] = err
				return
			}
			for at := next.Add(1) - 1; at < int64(len(needs)) && !stopped.Load(); at = next.Add(1) - 1 {
				if !f(try, &needs[at]) {
					stopped.Store(true)
				}
			}
		})
	}
	running.Wait()
	return errors.Join(failures...)
}

// trial decides on one key after another.
type trial struct {
	events  *events
	limiter *weir.Limiter
	now     int64
}

func newTrial(t *Traffic, limit weir.Limit) (*trial, error) {
	try := &trial{events: &t.events}
	var err error
	try.limiter, err = weir.NewWith(limit, weir.Options{Clock: func() int64 { return try.now }})
	return try, err
}

// begin forgets the key before.
func (t *trial) begin(key int) (times []int64) {
	times = t.events.of(key)
	t.now = times[0]
	t.limiter.Reset()
	return times
}

// key decides on the events of a key, from a fresh state, until f returns false.
func (t *trial) key(key int, f func(allowed bool, at, cost int64) bool) {
	for i, at := range t.begin(key) {
		t.now = at
		cost := t.events.costOf(key, i)
		if !f(t.limiter.AllowN(cost), at, cost) {
			return
		}
	}
}

// least returns the least that ever remains while the events of a key are taken.
func (t *trial) least(key int, most int64) int64 {
	for i, at := range t.begin(key) {
		t.now = at
		most = min(most, t.limiter.Take(t.events.costOf(key, i)).Remaining)
	}
	return most
}
