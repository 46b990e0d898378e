package report

import (
	"fmt"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
)

// Aims for memory and for single decisions.
const (
	mostBytes      = 28
	mostCollection = 2 * time.Millisecond
	mostP9999      = 100 * time.Microsecond
)

func memoryTargets(r *measure.Results) (all []Target) {
	for _, ours := range oneWord {
		all = append(all, footprintTargets(r, ours.name, ours.peer)...)
		for _, phase := range []string{measure.Forgetting, measure.Growth} {
			all = append(all, latencyTarget(r, ours.name, ours.peer, phase))
		}
	}
	return all
}

func footprintTargets(r *measure.Results, name, peer string) []Target {
	size := Target{Name: fmt.Sprintf("`%s`, bytes a key at %s keys", name, millions(r.Config.LargeKeys)),
		Aim: fmt.Sprintf("≤ %d", mostBytes), Measured: "-", Verdict: notMeasured}
	collection := Target{Name: fmt.Sprintf("`%s`, full collection at %s keys", name, millions(r.Config.LargeKeys)),
		Aim: "≤ " + ms(mostCollection), Measured: "-", Verdict: notMeasured}
	for _, f := range r.Footprints {
		if f.Peer != peer || f.Keys != r.Config.LargeKeys {
			continue
		}
		size.Measured, size.Verdict = fmt.Sprintf("%.1f", f.Heap), verdict(f.Heap, f.Heap, mostBytes)
		collection.Measured = fmt.Sprintf("%s, at least %s", ms(f.FullGC), ms(f.LeastGC))
		collection.Verdict = verdict(f.FullGC.Seconds(), f.LeastGC.Seconds(), mostCollection.Seconds())
	}
	return []Target{size, collection}
}

// latencyTarget counts the machine's own delays, seen in the loop, as spread.
func latencyTarget(r *measure.Results, name, peer, phase string) Target {
	t := Target{Name: fmt.Sprintf("`%s`, p99.99 of a decision, %s", name, phase),
		Aim: "< " + mostP9999.String(), Measured: "-", Verdict: notMeasured}
	var machine time.Duration
	for _, l := range r.Latencies {
		if l.Phase != phase {
			continue
		}
		if l.Peer == peers.Loop {
			machine = l.P9999
		}
		if l.Peer == peer {
			t.Measured = fmt.Sprintf("%v, worst %v (the loop alone: %v)", l.P9999, l.Max, machine)
			t.Verdict = verdict(l.P9999.Seconds(), (l.P9999 - machine).Seconds(), mostP9999.Seconds())
		}
	}
	return t
}

func waitingTargets(r *measure.Results) []Target {
	wait := Target{Name: "`Wait` that does not block, over `Allow`", Aim: "≤ 1.30 ×", Measured: "-", Verdict: notMeasured}
	line := Target{Name: "waiters released at 1e6/s", Aim: "≥ 0.99e6/s", Measured: "-", Verdict: notMeasured}
	w := r.Waiting
	if w == nil {
		return []Target{wait, line}
	}
	ratio := w.Wait.Over(w.Allow)
	low, high := ratio.Range()
	wait.Measured = fmt.Sprintf("%.2f × (%.2f to %.2f), %.4f allocations", ratio.Median(), low, high, w.Allocs)
	wait.Verdict = verdict(ratio.Median(), low, 1.3)
	if w.Allocs >= 0.01 {
		wait.Verdict = missed
	}
	var took measure.Series
	for _, l := range w.Lines {
		took = append(took, 1e6/l.PerSecond)
	}
	low, high = took.Range()
	line.Measured = fmt.Sprintf("%.0f/s (%.0f to %.0f)", 1e6/took.Median(), 1e6/high, 1e6/low)
	line.Verdict = verdict(took.Median(), low, 1/0.99)
	return []Target{wait, line}
}

func millions(keys int) string {
	if keys%1_000_000 == 0 {
		return fmt.Sprintf("%dM", keys/1_000_000)
	}
	return fmt.Sprint(keys)
}
