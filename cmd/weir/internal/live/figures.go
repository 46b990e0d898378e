package live

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/metrics"
)

// The bounds of the figures. A rule has at most marks and points of its own, and package promlimit bounds the rules.
const (
	mostMarks  = int(rateTime/tick) + 1
	points     = int(15 * time.Minute / step)
	mostCharts = 12 // rules with a history in a message, the busiest first
)

// figures are the counts of all rules over time.
type figures struct {
	rules  map[string]*row
	marks  [mostMarks]time.Time // when the counters were read; the row has the counts
	read   int                  // how often they were
	ended  [points]time.Time    // of the steps
	steps  int
	turned int // the tick of the last step
	all    history
	took   [mostMarks]metrics.Histogram
	lost   int // the tick when a rule has gone
}

// row holds the figures of a rule.
type row struct {
	metrics.Counts
	marks   [mostMarks][3]uint64 // admitted, refused and takes, by the marks of figures
	stepped [2]uint64            // at the last step
	history
	changed int // the tick when a number has changed
	shown   shown
}

// shown are the numbers of a row that change without decisions.
type shown struct {
	admitted, refused, takes, headroom float64
	fullest                            string
	isShadow                           bool
}

// history has the decisions a second of each step, admitted and refused.
type history [][2]float32

func (h *history) set(step int, admitted, refused float64) {
	if *h == nil {
		*h = make(history, points)
	}
	(*h)[step%points] = [2]float32{float32(admitted), float32(refused)}
}

func (f *figures) init() { f.rules = map[string]*row{} }

// add takes over what the counters say.
func (f *figures) add(now time.Time, read metrics.Figures, tick int) {
	for name := range f.rules {
		if read.Rules[name] == nil {
			delete(f.rules, name)
			f.lost = tick
		}
	}
	at := f.read % mostMarks
	f.marks[at], f.took[at] = now, read.Took
	for name, counts := range read.Rules {
		r := f.rules[name]
		if r == nil {
			r = &row{}
			f.rules[name] = r
		}
		if counts.Admitted < r.Admitted || counts.Refused < r.Refused { // the rule had gone, and has come back
			r.marks, r.stepped = [mostMarks][3]uint64{}, [2]uint64{}
		}
		if !same(&r.Counts, counts) {
			r.changed = tick
		}
		r.Counts = *counts
		r.marks[at] = [3]uint64{counts.Admitted, counts.Refused, counts.Takes}
	}
	f.read++
}

func same(a, b *metrics.Counts) bool {
	equal := func(a, b *metrics.Differences) bool { return a == b || a != nil && b != nil && *a == *b }
	return a.Admitted == b.Admitted && a.Takes == b.Takes && a.Refused == b.Refused && equal(a.Candidate, b.Candidate) && equal(a.Shadow, b.Shadow)
}

// before returns the mark that is rateTime old, or the oldest one since, and the seconds from then to the last one.
func (f *figures) before() (at int, seconds float64) {
	last := (f.read - 1) % mostMarks
	at = last
	for i := 1; i < min(f.read, mostMarks); i++ {
		if at = (f.read - 1 - i) % mostMarks; f.marks[last].Sub(f.marks[at]) >= rateTime {
			break
		}
	}
	return at, f.marks[last].Sub(f.marks[at]).Seconds()
}

// rates returns the decisions a second of a row over the last rateTime, to three digits.
func (f *figures) rates(r *row) (admitted, refused, takes float64) {
	at, seconds := f.before()
	if seconds == 0 {
		return 0, 0, 0
	}
	per := func(now, then uint64) float64 { return rounded(float64(now-min(then, now)) / seconds) }
	return per(r.Admitted, r.marks[at][0]), per(r.Refused, r.marks[at][1]), per(r.Takes, r.marks[at][2])
}

// rounded returns a number with three digits.
func rounded(x float64) float64 {
	if x == 0 {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

// step ends a step of the history.
func (f *figures) step(now time.Time, at int) {
	seconds := step.Seconds()
	if f.steps > 0 {
		seconds = max(now.Sub(f.ended[(f.steps-1)%points]), tick).Seconds()
	}
	f.ended[f.steps%points] = now
	var all [2]float64
	for _, r := range f.rules {
		admitted, refused := float64(r.Admitted-min(r.stepped[0], r.Admitted))/seconds, float64(r.Refused-min(r.stepped[1], r.Refused))/seconds
		r.stepped = [2]uint64{r.Admitted, r.Refused}
		r.history.set(f.steps, admitted, refused)
		all[0] += admitted
		all[1] += refused
	}
	f.all.set(f.steps, all[0], all[1])
	f.steps++
	f.turned = at
}

// charts returns the names of the rules with the most decisions in the history.
func (f *figures) charts() []string {
	sums := map[string]float32{}
	for name, r := range f.rules {
		for _, point := range r.history {
			sums[name] += point[0] + point[1]
		}
	}
	names := slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	return names[:min(len(names), mostCharts)]
}

// latency returns the durations that half and 99 of 100 of the last decisions took at most, in seconds.
func (f *figures) latency() *Latency {
	now, then := f.took[(f.read-1)%mostMarks], metrics.Histogram{}
	for i := 1; i < min(f.read, mostMarks); i++ {
		if at := (f.read - 1 - i) % mostMarks; f.took[at].UpTo != nil { // somebody watched
			then = f.took[at]
		}
	}
	if now.UpTo == nil || then.UpTo == nil || now.Count <= then.Count {
		return nil
	}
	bounds := slices.Sorted(maps.Keys(now.UpTo))
	quantile := func(q float64) float64 {
		rank, lower, below := q*float64(now.Count-then.Count), 0.0, 0.0
		for _, bound := range bounds {
			up := float64(now.UpTo[bound] - min(then.UpTo[bound], now.UpTo[bound]))
			if up >= rank {
				return rounded(lower + (bound-lower)*(rank-below)/max(up-below, 1))
			}
			lower, below = bound, up
		}
		return lower
	}
	return &Latency{quantile(0.5), quantile(0.99)}
}
