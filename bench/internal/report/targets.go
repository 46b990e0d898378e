package report

import (
	"fmt"
	"math"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

// Target is an aim and its result.
type Target struct{ Name, Aim, Measured, Verdict string }

// Verdicts. A target is missed only if no repetition reached the aim.
const (
	reached     = "reached"
	withinNoise = "within the spread"
	missed      = "**missed**"
	notMeasured = "not measured"
)

// Targets judges the results.
func Targets(r *measure.Results) (all []Target) {
	for _, make := range []func(*measure.Results) []Target{limiterTargets, keyedTargets, freshTargets, algorithmTargets, memoryTargets, waitingTargets} {
		all = append(all, make(r)...)
	}
	return all
}

// outcome is a figure by repetition, and its cell.
type outcome struct {
	series measure.Series
	cell   measure.Cell
}

// worst returns the outcome with the largest median.
func worst(outcomes []outcome) (found outcome) {
	for _, o := range outcomes {
		if len(o.series) > 0 && (found.series == nil || o.series.Median() > found.series.Median()) {
			found = o
		}
	}
	return found
}

// atMost judges the worst of several ratios.
func atMost(name string, bound float64, outcomes []outcome) Target {
	w := worst(outcomes)
	t := Target{Name: name, Aim: fmt.Sprintf("≤ %.2f ×", bound), Measured: "-", Verdict: notMeasured}
	if len(w.series) == 0 {
		return t
	}
	low, high := w.series.Range()
	t.Measured = fmt.Sprintf("%.2f × (%.2f to %.2f), at worst: %s", w.series.Median(), low, high, describe(w.cell))
	t.Verdict = verdict(w.series.Median(), low, bound)
	return t
}

func verdict(median, best, bound float64) string {
	switch {
	case median <= bound:
		return reached
	case best <= bound:
		return withinNoise
	}
	return missed
}

func describe(c measure.Cell) string {
	outcome, cores := "allowed", "1 core"
	if c.Denied {
		outcome = "denied"
	}
	if c.Cores > 1 {
		cores = fmt.Sprintf("%d cores", c.Cores)
	}
	return fmt.Sprintf("%s, %s, %s", c.Mix, outcome, cores)
}

// ratios compares a peer with another in every cell of some mixes.
func ratios(r *measure.Results, peer, base string, mixes ...string) (all []outcome) {
	for _, cell := range cells(r, peer, mixes...) {
		other := cell
		other.Peer = base
		if series := r.Series(cell).Over(r.Series(other)); len(series) > 0 {
			all = append(all, outcome{series, cell})
		}
	}
	return all
}

// againstBest compares a peer in every cell with the fastest of several others.
func againstBest(r *measure.Results, peer string, others []string, mixes ...string) (all []outcome) {
	for _, cell := range cells(r, peer, mixes...) {
		best := outcome{}
		for _, other := range others {
			otherCell := cell
			otherCell.Peer = other
			if o := r.Series(otherCell); len(o) > 0 && (best.series == nil || o.Median() < best.series.Median()) {
				best = outcome{o, otherCell}
			}
		}
		if best.series != nil {
			cell.Mix += " beside " + best.cell.Peer
			all = append(all, outcome{r.Series(measure.Cell{Peer: peer, Mix: best.cell.Mix, Denied: cell.Denied, Cores: cell.Cores}).Over(best.series), cell})
		}
	}
	return all
}

func cells(r *measure.Results, peer string, mixes ...string) (all []measure.Cell) {
	for _, mix := range mixes {
		for _, denied := range []bool{false, true} {
			for _, cores := range r.Config.Cores {
				cell := measure.Cell{Peer: peer, Mix: mix, Denied: denied, Cores: cores}
				if len(r.Cells[cell]) > 0 {
					all = append(all, cell)
				}
			}
		}
	}
	return all
}

func limiterTargets(r *measure.Results) []Target {
	ours := peers.OursLimiter + "tokenbucket"
	var rivals []string
	for _, p := range r.Config.Singles {
		if p.Kind == peers.Exact || p.Kind == peers.Approximate {
			rivals = append(rivals, p.Name)
		}
	}
	return []Target{
		atMost("`Limiter.Allow`, over one time.Since and one CAS", 1.2, ratios(r, ours, peers.FloorGCRA, measure.SingleMix)),
		atMost("`Limiter.Allow`, over x/time/rate", 0.5, ratios(r, ours, peers.XTimeRate, measure.SingleMix)),
		atMost("`Limiter.Allow`, over the fastest rival", 1, againstBest(r, ours, rivals, measure.SingleMix)),
		cachedTarget(r),
	}
}

// cachedTarget is in ns, not a ratio.
func cachedTarget(r *measure.Results) Target {
	const bound = 10
	t := Target{Name: "`Limiter.Allow` with the cached clock", Aim: fmt.Sprintf("≤ %d ns", bound), Measured: "-", Verdict: notMeasured}
	var outcomes []outcome
	for _, cell := range cells(r, peers.OursCached, measure.SingleMix) {
		outcomes = append(outcomes, outcome{r.Series(cell), cell})
	}
	if w := worst(outcomes); len(w.series) > 0 {
		low, high := w.series.Range()
		t.Measured = fmt.Sprintf("%.1f ns (%.1f to %.1f), at worst: %s", w.series.Median(), low, high, describe(w.cell))
		t.Verdict = verdict(w.series.Median(), low, bound)
	}
	return t
}

// knownMixes returns the names of the mixes whose keys the peers know.
func knownMixes(r *measure.Results) (names []string) {
	for _, mix := range r.Config.Mixes {
		if !mix.Fresh {
			names = append(names, mix.Name)
		}
	}
	return names
}

func exactRivals(r *measure.Results) (names []string) {
	for _, p := range r.Config.Keyeds {
		if p.Kind == peers.Exact {
			names = append(names, p.Name)
		}
	}
	return names
}

// oneWord are Weir's keyed token buckets, their names in the report, and their aims with one key over the floor table and
// in every mix over the fastest exact rival.
var oneWord = []struct {
	name, peer    string
	oneKey, rival float64
}{
	{"Keyed", peers.OursKeyed + "tokenbucket", 1.3, 1},
	{"Memory", peers.OursMemory + "tokenbucket", 1.7, 0.85},
}

func keyedTargets(r *measure.Results) (all []Target) {
	for _, ours := range oneWord {
		for _, mix := range knownMixes(r) {
			bound := 1.3
			if mix == workload.OneKey {
				bound = ours.oneKey
			}
			all = append(all, atMost(fmt.Sprintf("`%s`, %s, over the floor table", ours.name, mix), bound, ratios(r, ours.peer, peers.FloorTable, mix)))
		}
		all = append(all, atMost(fmt.Sprintf("`%s`, over the fastest exact rival", ours.name), ours.rival, againstBest(r, ours.peer, exactRivals(r), knownMixes(r)...)))
	}
	return all
}

func freshTargets(r *measure.Results) (all []Target) {
	for _, mix := range r.Config.Mixes {
		if !mix.Fresh {
			continue
		}
		for _, ours := range oneWord {
			prefix := fmt.Sprintf("`%s`, %s keys, ", ours.name, mix.Name)
			all = append(all,
				atMost(prefix+"over the floor table", 1.5, ratios(r, ours.peer, peers.FloorTable, mix.Name)),
				atMost(prefix+"over the fastest exact rival", 0.5, againstBest(r, ours.peer, exactRivals(r), mix.Name)),
				allocations(r, prefix+"allocations a call", ours.peer, mix.Name))
		}
	}
	return all
}

// allocations treats less than one in a hundred calls as none, because a growing table has to allocate.
func allocations(r *measure.Results, name, peer, mix string) Target {
	t := Target{Name: name, Aim: "0", Measured: "-", Verdict: notMeasured}
	most := -1.0
	for _, cell := range cells(r, peer, mix) {
		for _, s := range r.Cells[cell] {
			most = math.Max(most, s.AllocsPerOp)
		}
	}
	if most >= 0 {
		t.Measured, t.Verdict = fmt.Sprintf("%.4f at most", most), verdict(most, most, 0.01)
	}
	return t
}

// algorithmTargets compares Weir's algorithms with one another in the same mix.
func algorithmTargets(r *measure.Results) (all []Target) {
	for _, over := range []struct{ name, prefix string }{{"Keyed", peers.OursKeyed}, {"Memory", peers.OursMemory}} {
		for _, a := range []struct {
			name  string
			bound float64
		}{{"fixedwindow", 1.3}, {"slidingwindow", 1.3}, {"slidinglog", 3}} {
			if over.prefix == peers.OursKeyed && a.name == "slidinglog" {
				continue // measured with the engine only
			}
			name := fmt.Sprintf("`%s`, %s over token bucket", over.name, a.name)
			all = append(all, atMost(name, a.bound, ratios(r, over.prefix+a.name, over.prefix+"tokenbucket", knownMixes(r)...)))
		}
	}
	return all
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1e3) }
