package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/redistest"
)

func TestEveryCellIsMeasuredAndReported(t *testing.T) {
	cluster := redistest.StartCluster(t)
	on := servers{redistest.Start(t).Addr, cluster.Addrs()[:3]}
	cells := allCells(20*time.Millisecond, 20*time.Millisecond)
	got, err := measureAll(t.Context(), on, cells, 1, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		if len(got[c.id()]) != 1 || got[c.id()][0].perSecond <= 0 || got[c.id()][0].redis < 0 {
			t.Errorf("%v: got %+v, want one sample with decisions", c.id(), got[c.id()])
		}
	}
	text := report([]string{"a machine"}, got, 1, time.Second)
	if lines := strings.Count(text, " % |\n"); lines < len(cells) {
		t.Errorf("the report has figures of %d rows, want those of all %d", lines, len(cells))
	}
	for _, tt := range targets() {
		if !strings.Contains(text, tt.name) {
			t.Errorf("the report lacks the target %q", tt.name)
		}
	}
	if strings.Contains(text, "not measured") || strings.Contains(text, "| - |") {
		t.Errorf("the report lacks figures:\n%s", text)
	}
}

func TestWorkloadThatWasNotWhatItHadToBeIsAnError(t *testing.T) {
	spent := usage{exec: time.Second}
	tallyOf := func(admitted int) tally {
		return tally{admitted: admitted, decided: 10, latencies: make([]time.Duration, 10)}
	}
	tests := []struct {
		name    string
		tally   tally
		refused bool
		spent   usage
		fails   bool
	}{
		{"all admitted", tallyOf(10), false, spent, false},
		{"one refused", tallyOf(9), false, spent, true},
		{"all refused", tallyOf(0), true, spent, false},
		{"one admitted", tallyOf(1), true, spent, true},
		{"no decision", tally{}, false, spent, true},
		{"no script ran", tallyOf(10), false, usage{}, true},
	}
	for _, tt := range tests {
		_, err := tt.tally.sample(cell{refused: tt.refused}, time.Second, tt.spent)
		if (err != nil) != tt.fails {
			t.Errorf("%s: got error %v, want one: %v", tt.name, err, tt.fails)
		}
	}
}

func TestMissCountsOnlyOutsideTheSpread(t *testing.T) {
	tests := []struct {
		atLeast bool
		ratios  []float64
		want    string
	}{
		{true, []float64{1, 3, 4}, "reached"},
		{true, []float64{1, 1, 2}, "within the spread"},
		{true, []float64{1, 1, 1.9}, "**missed**"},
		{false, []float64{1, 2, 4}, "reached"},
		{false, []float64{2, 3, 4}, "within the spread"},
		{false, []float64{2.1, 3, 4}, "**missed**"},
		{false, nil, "not measured"},
	}
	for _, tt := range tests {
		if got := (target{bound: 2, atLeast: tt.atLeast}).verdict(tt.ratios); got != tt.want {
			t.Errorf("verdict of %v, at least %v: got %q, want %q", tt.ratios, tt.atLeast, got, tt.want)
		}
	}
}
