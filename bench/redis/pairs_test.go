package main

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/internal/redistest"
)

// build answers with the same figures for every row and notes the rows in a log that both builds share.
type build struct {
	name string
	figure
	log *[]string
}

func (b build) Ask(w window) (figure, error) {
	*b.log = append(*b.log, b.name)
	if b.PerSecond == 0 {
		return figure{}, errors.New("no answer")
	}
	return b.figure, nil
}

func somePairs(only string, repetitions int) *pairs {
	o := options{only: regexp.MustCompile(only), repetitions: repetitions, duration: time.Second, scripts: time.Second}
	cells, err := o.cells()
	if err != nil {
		panic(err)
	}
	return &pairs{options: o, cells: cells}
}

func TestBuildsOfTheRedisBenchTakeTurnsWithinEachRow(t *testing.T) {
	p := somePairs(`^(redislimit|ulule), 1 callers, 1 keys$`, 2)
	var log []string
	found := map[id]*paired{}
	for range 2 {
		if err := p.round(t.Context(), build{"old", figure{100, 10}, &log}, build{"new", figure{50, 30}, &log}, found); err != nil {
			t.Fatal(err)
		}
	}
	once := "old new new old old new" // two pairs of ours, and one of a rival
	if turns := strings.Join(log, " "); turns != once+" "+once {
		t.Errorf("the turns were %s", turns)
	}
	for i, c := range changes(p.cells, found) {
		if c.perSecond != (measure.Change{Before: 100, After: 50, Ratio: 0.5, Smallest: 0.5, Largest: 0.5}) || c.p50.Ratio != 3 {
			t.Errorf("row %d, %v: %+v and %+v", i, c.id(), c.perSecond, c.p50)
		}
		if n := len(found[c.id()].p50); n != 2 {
			t.Errorf("%v has %d rounds, want 2", c.id(), n)
		}
	}
	if err := p.round(t.Context(), build{"old", figure{}, &log}, build{"new", figure{50, 30}, &log}, found); err == nil {
		t.Error("a build without an answer went unnoticed")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := p.round(ended, build{"old", figure{1, 1}, &log}, build{"new", figure{1, 1}, &log}, found); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted round: error %v", err)
	}
}

func TestAChildMeasuresTheRowByItsName(t *testing.T) {
	single := redistest.Start(t).Addr
	w := window{Row: "redislimit, 1 callers, 1 keys", Duration: 20 * time.Millisecond, Single: single}
	if got, err := w.measure(t.Context()); err != nil || got.PerSecond <= 0 || got.P50 <= 0 {
		t.Errorf("%+v, error %v; want figures", got, err)
	}
	w.Row = "gone"
	if _, err := w.measure(t.Context()); err == nil || !strings.Contains(err.Error(), `unknown row "gone"`) {
		t.Errorf("an unknown row: error %v", err)
	}
}

// A row is found by its name, so no two rows may share one.
func TestEachRowHasANameOfItsOwn(t *testing.T) {
	var names []string
	for _, c := range allCells(0, 0) {
		if name := c.id().String(); slices.Contains(names, name) {
			t.Errorf("two rows are named %q", name)
		} else {
			names = append(names, name)
		}
	}
}

func TestRowsThatBecameWorseAreListedFirst(t *testing.T) {
	p := somePairs(`^(redislimit|ulule), 1 callers, 1 keys$|^(cycle|token bucket), .*refused`, 2)
	same := measure.Change{Before: 10, After: 10, Ratio: 1, Smallest: 1, Largest: 1}
	slow := func(ratio, smallest, largest float64) measure.Change {
		return measure.Change{Before: 10, After: 10 * ratio, Ratio: ratio, Smallest: smallest, Largest: largest}
	}
	figures := map[string][2]measure.Change{
		"redislimit":   {slow(0.94, 0.9, 0.96), slow(1.04, 1, 1.2)},
		"ulule":        {slow(0.5, 0.5, 0.5), slow(2, 2, 2)},
		"token bucket": {slow(0.96, 0.9, 1), slow(1.1, 1.06, 1.2)},
		"cycle":        {slow(1.5, 1.5, 1.5), same},
	}
	var list []change
	for _, c := range p.cells {
		of := figures[c.peer.name]
		list = append(list, change{c, of[0], of[1]})
	}
	p.base, p.rounds = "abc", 4
	text := pairsReport([]string{"a machine"}, p.options, list, time.Minute)
	want := `2 of 6 figures of Weir are more than 5 % worse by their median; of these 1 in every round.

- token bucket, 1 callers, 10000 keys, batches of 100, refused: p50 1.100 × (1.060 to 1.200)
- redislimit, 1 callers, 1 keys: decisions/s 0.940 × (0.900 to 0.960)

## Rows of Weir

| row | decisions/s | ratio | p50 µs | ratio |
|---|---:|---:|---:|---:|
| redislimit, 1 callers, 1 keys | 10 → 9 | 0.940 × (0.900 to 0.960) | 10 → 10 | 1.040 × (1.000 to 1.200) |
`
	if !strings.Contains(text, want) {
		t.Errorf("got\n%s\nwant in it\n%s", text, want)
	}
	rest := "how far luck alone moves a figure\n\n| row | decisions/s | ratio | p50 µs | ratio |\n|---|---:|---:|---:|---:|\n" +
		"| ulule, 1 callers, 1 keys | 10 → 5 | 0.500 × (0.500 to 0.500) | 10 → 20 | 2.000 × (2.000 to 2.000) |\n"
	if !strings.HasSuffix(text, rest) || !strings.Contains(text, "- before: abc\n") {
		t.Errorf("got\n%s\nwant at its end\n%s", text, rest)
	}
}

func TestFlagsOfPairs(t *testing.T) {
	tests := []struct {
		flags       string
		repetitions int
		duration    time.Duration
		out         string
		fails       bool
	}{
		{"", 5, 900 * time.Millisecond, "bench/REDIS.md", false},
		{"-base=x", 2, 250 * time.Millisecond, "bench/REDIS_PAIRS.md", false},
		{"-base=x -reps=7 -d=1s -o=y", 7, time.Second, "y", false},
		{"-base=x -only=cycle", 2, 250 * time.Millisecond, "-", false},
		{"-base=x -quick", 1, 50 * time.Millisecond, "-", false},
		{"-base=x -distance", 0, 0, "", true},
		{"-base=x -rounds=0", 0, 0, "", true},
		{"-only=(", 0, 0, "", true},
		{"stray", 0, 0, "", true},
	}
	for _, tt := range tests {
		o, err := parse(strings.Fields(tt.flags))
		if (err != nil) != tt.fails {
			t.Errorf("%q: error %v, want one: %v", tt.flags, err, tt.fails)
		}
		if !tt.fails && (o.repetitions != tt.repetitions || o.duration != tt.duration || o.out != tt.out) {
			t.Errorf("%q: got %d, %v, %q, want %d, %v, %q", tt.flags, o.repetitions, o.duration, o.out, tt.repetitions, tt.duration, tt.out)
		}
	}
}
