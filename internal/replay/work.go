package replay

import (
	"cmp"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirflow/weir"
)

// work tries limits of one form on the keys of a log, on all processors.
type work struct {
	search  *search
	family  family
	needs   []need // the largest first
	highest int64  // the smallest valid number that refuses nothing, or the largest valid one
}

// need is the smallest number that never refuses a key. It is above all valid ones if none is large enough.
type need struct {
	key    int
	number int64
}

// work finds what each key needs. It takes every event from a limit that is larger than all of them together, and sees
// how much of it was ever missing.
func (s *search) work(f family) (*work, error) {
	w := &work{search: s, family: f, needs: make([]need, len(s.totals))}
	for key := range w.needs {
		w.needs[key].key = key
	}
	ample := min(max(s.largest, 1), f.most)
	err := w.each(ample, w.needs, func(try *trial, n *need) bool {
		least := ample
		try.key(n.key, func(d weir.Decision, _ Event) bool {
			if !d.Allowed {
				least = ample - f.most - 1
				return false
			}
			least = min(least, d.Remaining)
			return true
		})
		n.number = max(1, ample-least)
		return true
	})
	slices.SortFunc(w.needs, func(a, b need) int {
		return cmp.Or(cmp.Compare(b.number, a.number), cmp.Compare(a.key, b.key))
	})
	w.highest = min(w.needs[0].number, f.most)
	return w, err
}

// above returns the keys that need more than a number. The others are never refused.
func (w *work) above(number int64) []need {
	n, _ := slices.BinarySearchFunc(w.needs, number, func(n need, number int64) int {
		if n.number > number {
			return -1
		}
		return 1
	})
	return w.needs[:n]
}

// refused counts refused requests. It stops above the budget.
func (w *work) refused(number, budget int64) (int64, error) {
	var refused atomic.Int64
	err := w.each(number, w.above(number), func(try *trial, n *need) bool {
		try.key(n.key, func(d weir.Decision, _ Event) bool {
			return d.Allowed || refused.Add(1) <= budget
		})
		return refused.Load() <= budget
	})
	return refused.Load(), err
}

// measured is a trade-off, and the key that is refused most often.
type measured struct {
	TradeOff
	worst *KeyReport
}

// measure decides with this number.
func (w *work) measure(number int64) (measured, error) {
	found := measured{TradeOff: TradeOff{Number: number}}
	others := newUnitsByWindow(w.search.target.window())
	var mu sync.Mutex
	err := w.each(number, w.above(number), func(try *trial, n *need) bool {
		refused, in := int64(0), newUnitsByWindow(w.search.target.window())
		try.key(n.key, func(d weir.Decision, e Event) bool {
			if !d.Allowed {
				refused++
				in.add(e.At, int64(e.Cost))
			}
			return true
		})
		mu.Lock()
		defer mu.Unlock()
		for window, units := range in.units {
			others.units[window] += units
		}
		found.add(w.search.traffic, n.key, refused)
		return true
	})
	found.Peak = w.search.offered.less(others)
	return found, err
}

// add counts the refusals of a key.
func (m *measured) add(t *Traffic, key int, refused int64) {
	if refused == 0 {
		return
	}
	m.Refused += refused
	m.KeysRefused++
	name := valid(t.keys[key])
	if m.worst == nil || refused > m.worst.Refused || refused == m.worst.Refused && name < m.worst.Key {
		m.worst = &KeyReport{Key: name, Admitted: int64(len(t.of(key))) - refused, Refused: refused}
	}
}

// each calls f for every key, on all processors, until f returns false. The needs are those of f alone meanwhile.
func (w *work) each(number int64, needs []need, f func(try *trial, n *need) bool) error {
	var next atomic.Int64
	var stopped atomic.Bool
	workers := min(runtime.GOMAXPROCS(0), max(1, len(needs)))
	failures := make([]error, workers)
	var running sync.WaitGroup
	for i := range workers {
		running.Go(func() {
			try, err := newTrial(w.search.traffic, w.family.limit(number))
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
	traffic *Traffic
	limiter *weir.Limiter
	now     int64
}

func newTrial(t *Traffic, limit weir.Limit) (*trial, error) {
	try := &trial{traffic: t}
	var err error
	try.limiter, err = weir.NewWith(limit, weir.Options{Clock: func() int64 { return try.now }})
	return try, err
}

// key takes the events of a key, from a fresh state, until f returns false.
func (t *trial) key(key int, f func(d weir.Decision, e Event) bool) {
	events := t.traffic.of(key)
	t.now = events[0].At
	t.limiter.Reset()
	for _, e := range events {
		t.now = e.At
		if !f(t.limiter.Take(int64(e.Cost)), e) {
			return
		}
	}
}
