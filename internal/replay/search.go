package replay

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/tape"
)

// search looks for limits on the events of a log.
//
// A larger number never refuses a key that a smaller one spares. If every request costs 1, it also never refuses more
// requests, so the search can halve.
type search struct {
	traffic  *Traffic
	target   Target
	bound    int64 // the most that the figure of the target may be
	requests int64
	units    int64
	totals   []int64 // units by key
	largest  int64   // of totals
	single   int64   // the largest cost
	varied   bool    // a request costs more than 1
	offered  unitsByWindow
	peak     int64
}

func newSearch(t *Traffic, target Target) *search {
	s := &search{traffic: t, target: target, requests: int64(t.events.n), totals: make([]int64, len(t.keys)), single: 1}
	s.offered = newUnitsByWindow(target.window())
	for key := range t.keys {
		for _, e := range t.of(key) {
			cost := int64(e.Cost)
			s.totals[key] += cost
			s.single = max(s.single, cost)
			s.offered.add(e.At, cost)
		}
		s.units += s.totals[key]
		s.largest = max(s.largest, s.totals[key])
	}
	s.varied = s.single > 1
	s.peak = s.offered.less(unitsByWindow{})
	s.bound = s.allowed()
	return s
}

// allowed returns the most that the figure of the target may be. The clients below a percentile are all with as few units.
func (s *search) allowed() (n int64) {
	switch t := s.target; {
	case t.share.whole == 0:
		return t.rate.Count
	case t.kind == refuseRequests:
		return t.part(s.requests)
	case t.kind == refuseClients:
		return t.part(int64(len(s.totals)))
	}
	most := s.mostOfSpared()
	for _, units := range s.totals {
		if units > most {
			n++
		}
	}
	return n
}

// mostOfSpared returns the units of the largest client that the target spares.
func (s *search) mostOfSpared() int64 {
	if len(s.totals) == 0 {
		return 0
	}
	sorted := slices.Clone(s.totals)
	slices.Sort(sorted)
	return sorted[s.target.spared(int64(len(sorted)))-1]
}

// unitsByWindow counts units by window of the clock.
type unitsByWindow struct {
	length int64
	units  map[int64]int64
}

func newUnitsByWindow(length time.Duration) unitsByWindow {
	return unitsByWindow{int64(length), map[int64]int64{}}
}

func (u unitsByWindow) add(at, units int64) { u.units[tape.WindowOf(at, u.length)] += units }

// less returns the most units within a window that remain without the others.
func (u unitsByWindow) less(others unitsByWindow) (most int64) {
	for window, n := range u.units {
		most = max(most, n-others.units[window])
	}
	return most
}

// suggestion finds the number of the form that just meets the target. ok is false if none does.
func (w *work) suggestion() (found Suggestion, ok bool, err error) {
	number, ok, err := w.number()
	if err != nil || !ok {
		return found, false, err
	}
	got, err := w.measure(number)
	if err != nil {
		return found, false, err
	}
	found = Suggestion{
		Limit: w.family.text(number), Form: w.family.form, TradeOff: got.TradeOff, Worst: got.worst,
		In1s: w.family.within(number, time.Second), In1m: w.family.within(number, time.Minute), In1h: w.family.within(number, time.Hour),
	}
	next := number - 1
	if w.search.target.kind == admitInAll {
		next = number + 1
	}
	if next < 1 || next > w.highest {
		return found, true, nil
	}
	missed, err := w.measure(next)
	found.Next = &missed.TradeOff
	return found, true, err
}

// number returns the smallest number that refuses few enough, or the largest that admits few enough in all.
func (w *work) number() (number int64, ok bool, err error) {
	s := w.search
	switch s.target.kind {
	case refuseClients:
		number = w.needAfter(s.bound)
	case spareClients:
		number = w.needOfSpared()
	case refuseRequests:
		return w.smallest(func(number int64) (bool, error) {
			refused, err := w.refused(number, s.bound)
			return refused <= s.bound, err
		})
	default:
		return w.largest(func(number int64) (bool, error) {
			got, err := w.measure(number)
			return got.Peak <= s.bound, err
		})
	}
	return number, number <= w.family.most, nil
}

// needAfter returns what the keys need, except for n of them.
func (w *work) needAfter(n int64) int64 {
	if n >= int64(len(w.needs)) {
		return 1
	}
	return w.needs[n].number
}

// needOfSpared returns the number that no spared client exceeds.
func (w *work) needOfSpared() int64 {
	most := w.search.mostOfSpared()
	for _, need := range w.needs {
		if w.search.totals[need.key] <= most {
			return need.number
		}
	}
	return 1
}

// smallest halves the numbers for the smallest one that holds.
func (w *work) smallest(holds func(int64) (bool, error)) (number int64, ok bool, err error) {
	n := sort.Search(int(w.highest), func(i int) bool {
		held, failed := holds(int64(i) + 1)
		err = cmp.Or(err, failed)
		return held
	})
	return int64(n) + 1, int64(n) < w.highest, err
}

// largest halves the numbers for one that holds, while the next one does not, or is larger than any key needs.
func (w *work) largest(holds func(int64) (bool, error)) (number int64, ok bool, err error) {
	n := sort.Search(int(w.highest), func(i int) bool {
		held, failed := holds(w.highest - int64(i))
		err = cmp.Or(err, failed)
		return held
	})
	return w.highest - int64(n), int64(n) < w.highest, err
}

// together decides in order of time with one window of the clock for all keys, if the target bounds what they get
// together. At one instant, the cheapest requests come first.
func (s *search) together() (*Together, error) {
	if s.target.kind != admitInAll {
		return nil, nil
	}
	limit := weir.FixedWindow{Rate: s.target.rate}
	try, err := newTrial(s.traffic, limit)
	if err != nil {
		return nil, err
	}
	events := slices.AppendSeq(make([]Event, 0, s.traffic.events.n), s.traffic.All())
	slices.SortFunc(events, func(a, b Event) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Cost, b.Cost)) })
	found := &Together{Limit: limit.String()}
	for _, e := range events {
		try.now = e.At
		if !try.limiter.Take(int64(e.Cost)).Allowed {
			found.Refused++
		}
	}
	return found, nil
}

// curves measures the forms of the suggestions, or all forms without suggestions.
func (s *search) curves(works []*work, suggested []Suggestion) ([]Curve, error) {
	curves := []Curve{}
	for _, w := range works {
		at := slices.IndexFunc(suggested, func(l Suggestion) bool { return l.Form == w.family.form })
		if at < 0 && len(suggested) > 0 {
			continue
		}
		found := int64(1)
		if at >= 0 {
			found = suggested[at].Number
		}
		curve := Curve{Form: w.family.form}
		for _, number := range curveNumbers(found, w.highest) {
			got, err := w.measure(number)
			if err != nil {
				return nil, err
			}
			curve.Points = append(curve.Points, got.TradeOff)
		}
		curves = append(curves, curve)
	}
	return curves, nil
}

// curvePoints bounds the points of a curve around the number found.
const curvePoints = 7

// curveNumbers returns numbers around the one found, which is among them, and the highest.
func curveNumbers(found, highest int64) []int64 {
	low, high := math.Max(1, float64(found)/8), math.Max(float64(min(highest, 8*found)), 2)
	numbers := []int64{found, highest}
	for i := range curvePoints - 1 {
		n := int64(math.Round(low * math.Pow(high/low, float64(i)/(curvePoints-2))))
		numbers = append(numbers, min(n, highest))
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
