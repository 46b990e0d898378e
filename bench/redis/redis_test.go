package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/internal/redistest"
)

func TestEachPeerIsMeasured(t *testing.T) {
	place := redistest.Start(t).Addr + " " + strings.Join(redistest.StartCluster(t).Addrs()[:3], ",")
	o := &measure.Options{Window: 10 * time.Millisecond, Place: place}
	names := map[string]bool{}
	for i, row := range rows() {
		if names[row.Name()] {
			t.Errorf("two rows are named %q", row.Name())
		}
		names[row.Name()] = true
		if c := cells()[i]; c.callers == 16 || c.callers > 16 && c.keys == 1 { // others measure the same peers
			continue
		}
		if f, err := row.Measure(t.Context(), o); err != nil || f[perSecond] <= 0 || f[redisCPU] < 0 {
			t.Errorf("%s: %v and error %v, want decisions", row.Name(), f, err)
		}
	}
	for _, target := range targets(nil) {
		if c := target.Cases[0]; !names[c.Row] || !names[c.Over[0]] {
			t.Errorf("%s compares %q with %q: there is no such row", target.Name, c.Row, c.Over[0])
		}
	}
}

func TestWorkloadThatWasNotWhatItHadToBeIsAnError(t *testing.T) {
	spent := usage{exec: time.Second, took: time.Second}
	tallyOf := func(admitted int) tally {
		return tally{admitted: admitted, decided: 10, latencies: make([]time.Duration, 10)}
	}
	for name, tt := range map[string]struct {
		tally   tally
		refused bool
		spent   usage
		fails   bool
	}{
		"all admitted":  {tallyOf(10), false, spent, false},
		"one refused":   {tallyOf(9), false, spent, true},
		"all refused":   {tallyOf(0), true, spent, false},
		"one admitted":  {tallyOf(1), true, spent, true},
		"no decision":   {tally{}, false, spent, true},
		"no script ran": {tallyOf(10), false, usage{}, true},
	} {
		if _, err := tt.tally.figures(tt.refused, tt.spent); (err != nil) != tt.fails {
			t.Errorf("%s: got error %v, want one: %v", name, err, tt.fails)
		}
	}
}
