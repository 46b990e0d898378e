package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
)

// Suggestions are the token buckets that meet a target on a log: for each of several rates the burst that just does.
// `weir replay --suggest` prints them as JSON.
type Suggestions struct {
	Target   string       `json:"target"`
	Requests int64        `json:"requests"`
	Units    int64        `json:"units"`
	Keys     int          `json:"keys"`
	Peak     int64        `json:"peak"` // the most units within a second of the clock, without a limit
	Limits   []Suggestion `json:"suggestions"`
	Curves   []Curve      `json:"curves"`
}

// Suggestion is a limit on the frontier: no other suggestion refuses as few requests and gives one key as little within
// a second, a minute and an hour.
type Suggestion struct {
	Limit string `json:"limit"`
	TradeOff
	In1s int64 `json:"most_in_1s"` // the most that one key may take: burst + rate × time
	In1m int64 `json:"most_in_1m"`
	In1h int64 `json:"most_in_1h"`
}

// TradeOff is what a token bucket of some rate and this burst would have done.
type TradeOff struct {
	Burst       int64 `json:"burst"`
	Refused     int64 `json:"refused"`      // requests
	KeysRefused int   `json:"keys_refused"` // keys that are refused at least once
	Peak        int64 `json:"peak"`         // the most units admitted within a second of the clock, of all keys
}

// Curve shows what a larger burst buys at one rate.
type Curve struct {
	Rate   string     `json:"rate"`
	Points []TradeOff `json:"points"` // in order of burst
}

// Suggest finds token buckets for a target. A target that no limit can miss, or that none can meet, has no suggestions.
func (t *Traffic) Suggest(target Target, tell func(done, of int64)) (Suggestions, error) {
	if target.text == "" {
		return Suggestions{}, errors.New("simulate: suggest: the target is empty: make it with ParseTarget")
	}
	t.group()
	s := newSearch(t, target)
	result := Suggestions{Target: target.text, Requests: int64(len(t.events)), Units: s.units, Keys: len(t.keys), Peak: s.peak, Limits: []Suggestion{}, Curves: []Curve{}}
	rates := s.rates()
	for i, rate := range rates {
		found, curve, ok, err := s.at(rate)
		if err != nil {
			return Suggestions{}, fmt.Errorf("simulate: suggest: %w", err)
		}
		if len(curve.Points) > 0 {
			result.Curves = append(result.Curves, curve)
		}
		if ok {
			result.Limits = append(result.Limits, found)
		}
		if tell != nil {
			tell(int64(i+1), int64(len(rates)))
		}
	}
	result.Limits = frontier(result.Limits)
	return result, nil
}

// frontier removes every suggestion that another one beats, or equals, in all respects.
func frontier(all []Suggestion) []Suggestion {
	kept := []Suggestion{}
	for i, a := range all {
		beaten := slices.ContainsFunc(all, func(b Suggestion) bool { return b.beats(a) })
		if !beaten && !slices.ContainsFunc(all[:i], func(b Suggestion) bool { return b == a }) {
			kept = append(kept, a)
		}
	}
	slices.SortStableFunc(kept, func(a, b Suggestion) int { return cmp.Compare(a.In1s, b.In1s) })
	return kept
}

func (s Suggestion) beats(other Suggestion) bool {
	noWorse := s.Refused <= other.Refused && s.In1s <= other.In1s && s.In1m <= other.In1m && s.In1h <= other.In1h
	better := s.Refused < other.Refused || s.In1s < other.In1s || s.In1m < other.In1m || s.In1h < other.In1h
	return noWorse && better
}

// suggestion describes a token bucket.
func suggestion(rate weir.Rate, found TradeOff) Suggestion {
	within := func(d time.Duration) int64 { return found.Burst + unitsIn(rate, d) }
	return Suggestion{
		Limit: weir.TokenBucket{Rate: rate, Burst: found.Burst}.String(), TradeOff: found,
		In1s: within(time.Second), In1m: within(time.Minute), In1h: within(time.Hour),
	}
}

// search looks for token buckets on the events of a log. A larger burst never refuses more, so it can halve.
type search struct {
	traffic *Traffic
	target  Target
	units   int64
	totals  []int64 // units by key
	largest int64   // of totals
	single  int64   // the largest cost
	seconds unitsBySecond
	peak    int64
}

func newSearch(t *Traffic, target Target) *search {
	s := &search{traffic: t, target: target, totals: make([]int64, len(t.keys)), single: 1}
	s.seconds = unitsBySecond{}
	for key := range t.keys {
		for _, e := range t.of(key) {
			cost := int64(e.cost)
			s.totals[key] += cost
			s.single = max(s.single, cost)
			s.seconds.add(e.at, cost)
		}
		s.units += s.totals[key]
		s.largest = max(s.largest, s.totals[key])
	}
	s.peak = s.seconds.most()
	return s
}

// unitsBySecond counts units by second of the clock.
type unitsBySecond map[int64]int64

func (s unitsBySecond) add(at, units int64) { s[secondOf(at)] += units }

func (s unitsBySecond) most() (most int64) {
	for _, n := range s {
		most = max(most, n)
	}
	return most
}

// less returns the most units within a second that remain without the others.
func (s unitsBySecond) less(others unitsBySecond) (most int64) {
	for second, n := range s {
		most = max(most, n-others[second])
	}
	return most
}

// mostRates bounds the rates of a search.
const mostRates = 9

// rates returns round rates: from the mean rate of the busiest key to the rate of the busiest second.
func (s *search) rates() []weir.Rate {
	if len(s.totals) == 0 {
		return nil
	}
	low := float64(s.largest) / math.Max(float64(since(s.traffic.first, s.traffic.last)), float64(time.Second))
	high := math.Max(float64(s.mostOfAKey())/float64(time.Second), low)
	var all []weir.Rate
	for _, rate := range roundRates() {
		if r := perNano(rate); r >= low/2 && r <= high*2 {
			all = append(all, rate)
		}
	}
	if len(all) <= mostRates {
		return all
	}
	some := make([]weir.Rate, mostRates)
	for i := range some {
		some[i] = all[i*(len(all)-1)/(mostRates-1)]
	}
	return some
}

// mostOfAKey returns the most units of one key within any second.
func (s *search) mostOfAKey() (most int64) {
	for key := range s.totals {
		most = max(most, mostWithinAny(time.Second, s.traffic.of(key)))
	}
	return most
}

// roundRates are 1, 2 and 5 times powers of ten in an hour, a minute and a second, without equal ones.
func roundRates() (rates []weir.Rate) {
	for _, n := range []int64{1, 2, 5, 10, 20, 30} {
		rates = append(rates, weir.PerDay(n))
	}
	for _, n := range []int64{2, 5, 10, 20, 30} {
		rates = append(rates, weir.PerHour(n))
	}
	for _, n := range []int64{1, 2, 5, 10, 20, 30} {
		rates = append(rates, weir.PerMinute(n))
	}
	for unit := int64(1); unit <= 1e8; unit *= 10 {
		for _, n := range []int64{1, 2, 5} {
			rates = append(rates, weir.PerSecond(n*unit))
		}
	}
	return rates
}

// at finds the burst of one rate, and the curve around it. ok is false if no burst meets the target.
func (s *search) at(rate weir.Rate) (found Suggestion, curve Curve, ok bool, err error) {
	w, err := s.work(rate)
	if err != nil {
		return found, curve, false, err
	}
	highest := max(w.needs[0].burst, s.single)
	burst, ok, err := s.burst(w, highest)
	if err != nil {
		return found, curve, false, err
	}
	curve.Rate = rate.String()
	for _, b := range curveBursts(burst, highest) {
		point, err := w.tradeOff(b)
		if err != nil {
			return found, curve, false, err
		}
		curve.Points = append(curve.Points, point)
		if b == burst {
			found = suggestion(rate, point)
		}
	}
	return found, curve, ok, nil
}

// burst returns the smallest burst that refuses few enough, or a large one that protects the capacity.
func (s *search) burst(w *work, highest int64) (burst int64, ok bool, err error) {
	switch s.target.kind {
	case spareClients:
		return max(1, s.needOfSpared(w)), true, nil
	case protectRate:
		return s.protect(w, highest)
	}
	budget := int64(s.target.share * float64(len(s.traffic.events)))
	n := sort.Search(int(highest-1), func(i int) bool {
		refused, failed := w.refused(int64(i)+1, budget)
		err = cmp.Or(err, failed)
		return refused <= budget
	})
	return int64(n) + 1, true, err
}

// needOfSpared returns the burst that none of the clients below the percentile exceeds.
func (s *search) needOfSpared(w *work) (burst int64) {
	sorted := slices.Clone(s.totals)
	slices.Sort(sorted)
	limit := sorted[max(0, int(math.Ceil(s.target.share*float64(len(sorted))))-1)]
	for _, need := range w.needs {
		if s.totals[need.key] <= limit {
			return need.burst
		}
	}
	return 1
}

// protect returns a burst with which no second admits more than the target, while one more would. It halves first,
// although the busiest second is not quite monotone in the burst, and then climbs.
func (s *search) protect(w *work, highest int64) (burst int64, ok bool, err error) {
	most := s.target.PerSecond()
	holds := func(burst int64) bool {
		point, failed := w.tradeOff(burst)
		err = cmp.Or(err, failed)
		return point.Peak <= most
	}
	n := sort.Search(int(highest), func(i int) bool { return holds(highest - int64(i)) })
	burst = highest - int64(n)
	for err == nil && burst < highest && holds(burst+1) {
		burst++
	}
	return max(1, burst), burst > 0, err
}

// curvePoints bounds the points of a curve.
const curvePoints = 7

// curveBursts returns bursts around the one found, which is among them, up to the one that refuses nothing.
func curveBursts(found, highest int64) []int64 {
	low, high := math.Max(1, float64(found)/8), math.Max(float64(min(highest, 8*found)), 2)
	bursts := []int64{found}
	for i := range curvePoints - 1 {
		bursts = append(bursts, int64(math.Round(low*math.Pow(high/low, float64(i)/(curvePoints-2)))))
	}
	slices.Sort(bursts)
	return slices.Compact(bursts)
}

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
		least := ample
		try.key(n.key, func(d weir.Decision, _ event) bool {
			least = min(least, d.Remaining)
			return true
		})
		n.burst = max(1, ample-least)
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
		try.key(n.key, func(d weir.Decision, _ event) bool {
			return d.Allowed || refused.Add(1) <= budget
		})
		return refused.Load() <= budget
	})
	return refused.Load(), err
}

// tradeOff measures a token bucket of this burst.
func (w *work) tradeOff(burst int64) (TradeOff, error) {
	found, others := TradeOff{Burst: burst}, unitsBySecond{}
	var mu sync.Mutex
	err := w.each(burst, w.above(burst), func(try *trial, n *need) bool {
		refused, in := int64(0), unitsBySecond{}
		try.key(n.key, func(d weir.Decision, e event) bool {
			if !d.Allowed {
				refused++
				in.add(e.at, int64(e.cost))
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
func (t *trial) key(key int, f func(d weir.Decision, e event) bool) {
	events := t.traffic.of(key)
	t.now = events[0].at
	t.limiter.Reset()
	for _, e := range events {
		t.now = e.at
		if !f(t.limiter.Take(int64(e.cost)), e) {
			return
		}
	}
}
