package main

import "slices"

// tally counts what the processes of a workload do.
type tally struct {
	calls, grants int
	last, gap     instant // of grants to anybody
}

func (t *tally) grant(now instant) { t.gap, t.last = max(t.gap, now-t.last), now }

// figures tell how a workload went.
type figures struct {
	share   float64 // of what is possible
	calls   float64 // a grant
	seconds float64 // calls a second
	least   float64 // the least process's grants or units, of the greatest's
	gap     instant // longest time without a grant
	wide    instant // longest wait of the wide caller
}

func (t *tally) figures(length instant) figures {
	return figures{
		calls:   float64(t.calls) / float64(max(1, t.grants)),
		seconds: float64(t.calls) * float64(second) / float64(length),
		gap:     max(t.gap, length-t.last),
	}
}

func least(of []int64) float64 { return float64(slices.Min(of)) / float64(max(1, slices.Max(of))) }
