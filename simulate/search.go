package simulate

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/weirflow/weir"
)

// search looks for token buckets on the events of a log. A larger burst never refuses more, so it can halve.
type search struct {
	traffic *Traffic
	target  Target
	units   int64
	totals  []int64 // units by key
	largest int64   // of totals
	single  int64   // the largest cost
	seconds seconds
	peak    int64
}

func newSearch(t *Traffic, target Target) *search {
	s := &search{traffic: t, target: target, totals: make([]int64, len(t.keys)), single: 1}
	s.seconds = seconds{}
	for key := range t.keys {
		for i, at := range t.events.of(key) {
			cost := t.events.costOf(key, i)
			s.totals[key] += cost
			s.single = max(s.single, cost)
			s.seconds.add(at, cost)
		}
		s.units += s.totals[key]
		s.largest = max(s.largest, s.totals[key])
	}
	s.peak = s.seconds.most()
	return s
}

// seconds counts units by second of the clock.
type seconds map[int64]int64

func (s seconds) add(at, units int64) { s[secondOf(at)] += units }

func (s seconds) most() (most int64) {
	for _, n := range s {
		most = max(most, n)
	}
	return most
}

// less returns the most units within a second that remain without the others.
func (s seconds) less(others seconds) (most int64) {
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
	first, last := s.traffic.span()
	low := float64(s.largest) / math.Max(float64(since(first, last)), float64(time.Second))
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
	events := &s.traffic.events
	for key := range s.totals {
		if s.totals[key] <= most {
			continue
		}
		times, first, sum := events.of(key), 0, int64(0)
		for i, at := range times {
			for since(times[first], at) >= uint64(time.Second) {
				sum -= events.costOf(key, first)
				first++
			}
			sum += events.costOf(key, i)
			most = max(most, sum)
		}
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
	budget := int64(s.target.share * float64(s.traffic.events.count))
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
