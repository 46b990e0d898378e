package trial

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Span is units that were admitted between two instants. A relief is units that a bound does not cover if the window
// touches it: they were given back, or a fault grants them.
type Span struct {
	From, To int64
	Units    float64
	By       string // who used them, for a report
}

// Excess is the window in which most was admitted, compared with a bound.
type Excess struct {
	Over     float64 // units above the bound; below 0 for a bound that was kept
	From, To int64
}

// worstWindow looks at every window [a, c] that begins when a call was sent and ends when one was answered. It
// sums the calls that lie in it as a whole, less the reliefs that touch it, and compares with units + rate × (c-a+1).
// With a period it looks only at windows shorter than that.
func worstWindow(used, reliefs []Span, units, rate float64, period int64) Excess {
	begins := make([]int64, 0, len(used))
	for _, u := range used {
		begins = append(begins, u.From)
	}
	slices.Sort(begins)
	begins = slices.Compact(begins)
	if len(begins) == 0 {
		return Excess{Over: -units}
	}
	origin := begins[0]
	tree := newTree(begins, func(a int64) float64 { return rate * float64(a-origin) })
	used, reliefs = slices.Clone(used), slices.Clone(reliefs)
	slices.SortFunc(used, func(x, y Span) int { return cmp.Compare(x.To, y.To) })
	slices.SortFunc(reliefs, func(x, y Span) int { return cmp.Compare(x.From, y.From) })
	worst, next := Excess{Over: math.Inf(-1)}, 0
	for _, u := range used {
		for ; next < len(reliefs) && reliefs[next].From <= u.To; next++ {
			tree.add(countUpTo(begins, reliefs[next].To), -reliefs[next].Units)
		}
		tree.add(countUpTo(begins, u.From), u.Units)
		first := 0
		if period > 0 {
			first = countUpTo(begins, u.To-period)
		}
		sum, at := tree.most(first, countUpTo(begins, u.To))
		if at < 0 {
			continue
		}
		if over := sum - rate*float64(u.To-origin+1) - units; over > worst.Over {
			worst = Excess{over, begins[at], u.To}
		}
	}
	return worst
}

// worstAligned compares each window that is aligned to the epoch with units.
func worstAligned(used, reliefs []Span, units float64, period int64) Excess {
	sums := map[int64]float64{}
	for _, u := range used {
		if w := u.From / period; w == u.To/period {
			sums[w] += u.Units
		}
	}
	worst := Excess{Over: -units}
	for w, sum := range sums {
		from, to := w*period, (w+1)*period-1
		for _, r := range reliefs {
			if r.From <= to && r.To >= from {
				sum -= r.Units
			}
		}
		if over := sum - units; over > worst.Over {
			worst = Excess{over, from, to}
		}
	}
	return worst
}

// WorstHeld returns the instant at which most slots were held, compared with the slots that there are.
func WorstHeld(held, reliefs []Span, units float64) Excess {
	type change struct {
		at    int64
		units float64
	}
	var changes []change
	for _, h := range held {
		if h.To > h.From {
			changes = append(changes, change{h.From, h.Units}, change{h.To, -h.Units})
		}
	}
	for _, r := range reliefs {
		changes = append(changes, change{r.From, -r.Units}, change{r.To + 1, r.Units})
	}
	slices.SortFunc(changes, func(x, y change) int { // what ends at an instant ends first
		if x.at != y.at {
			return cmp.Compare(x.at, y.at)
		}
		return cmp.Compare(x.units, y.units)
	})
	worst, sum := Excess{Over: -units}, 0.0
	for _, c := range changes {
		sum += c.units
		if over := sum - units; over > worst.Over {
			worst = Excess{over, c.at, c.at}
		}
	}
	return worst
}

// countUpTo returns how many of the sorted instants are at or before an instant.
func countUpTo(sorted []int64, instant int64) int {
	return sort.Search(len(sorted), func(i int) bool { return sorted[i] > instant })
}

// tree holds a number for each place, adds to all places before one, and finds the largest of a range.
type tree struct {
	size  int
	best  []float64 // of the places below, without what is pending above
	where []int
	added []float64 // to all places below
}

func newTree(begins []int64, number func(int64) float64) *tree {
	size := 1
	for size < len(begins) {
		size *= 2
	}
	t := &tree{size, make([]float64, 2*size), make([]int, 2*size), make([]float64, 2*size)}
	for i := range size {
		t.best[size+i], t.where[size+i] = math.Inf(-1), i
		if i < len(begins) {
			t.best[size+i] = number(begins[i])
		}
	}
	for node := size - 1; node > 0; node-- {
		t.pull(node)
	}
	return t
}

func (t *tree) pull(node int) {
	child := 2 * node
	if t.best[child+1] > t.best[child] {
		child++
	}
	t.best[node], t.where[node] = t.best[child]+t.added[node], t.where[child]
}

// add adds units to the first n places.
func (t *tree) add(n int, units float64) { t.addTo(1, 0, t.size, n, units) }

func (t *tree) addTo(node, low, high, n int, units float64) {
	if n <= low {
		return
	}
	if n >= high {
		t.best[node] += units
		t.added[node] += units
		return
	}
	middle := (low + high) / 2
	t.addTo(2*node, low, middle, n, units)
	t.addTo(2*node+1, middle, high, n, units)
	t.pull(node)
}

// most returns the largest number of the places from first to before last, and its place; -1 if there is none.
func (t *tree) most(first, last int) (float64, int) { return t.mostOf(1, 0, t.size, first, last) }

func (t *tree) mostOf(node, low, high, first, last int) (float64, int) {
	if last <= low || high <= first {
		return math.Inf(-1), -1
	}
	if first <= low && high <= last {
		return t.best[node], t.where[node]
	}
	middle := (low + high) / 2
	a, i := t.mostOf(2*node, low, middle, first, last)
	b, j := t.mostOf(2*node+1, middle, high, first, last)
	if j >= 0 && (b > a || i < 0) {
		a, i = b, j
	}
	return a + t.added[node], i
}
