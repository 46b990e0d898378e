package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/weirflow/weir/bench/internal/measure"
)

var someCell = measure.Cell{Peer: "weir_a", Mix: "m", Cores: 1}

// script answers with figures in order and notes the turns in a log that the two builds share.
type script struct {
	name    string
	figures []float64
	log     *[]string
}

func (s *script) Ask(measure.Cell) (float64, error) {
	*s.log = append(*s.log, s.name)
	if len(s.figures) == 0 {
		return 0, errors.New("no answer")
	}
	next := s.figures[0]
	s.figures = s.figures[1:]
	return next, nil
}

func TestBuildsTakeTurnsWindowByWindow(t *testing.T) {
	var log []string
	before, after := &script{"old", []float64{1, 2, 3, 4}, &log}, &script{"new", []float64{10, 20, 30, 40}, &log}
	got, err := alternate(before, after, someCell, freshShare, 4)
	if err != nil || len(got.Before) != 1 || got.Before[0] != 2.5 || got.After[0] != 25 {
		t.Errorf("four slices of new keys: %+v, error %v; want the means 2.5 and 25", got, err)
	}
	if turns := strings.Join(log, " "); turns != "old new new old old new new old" {
		t.Errorf("the turns were %s", turns)
	}
	if _, err := alternate(before, after, someCell, freshShare, 4); err == nil {
		t.Error("a build without an answer went unnoticed")
	}
}

func TestTheFirstWindowOfKnownKeysDoesNotCount(t *testing.T) {
	var oldLog, newLog []string // the first windows run at the same time
	before, after := &script{"old", []float64{100, 1, 2}, &oldLog}, &script{"new", []float64{100, 3, 4}, &newLog}
	got, err := alternate(before, after, someCell, 2, 1)
	if err != nil || len(got.Before) != 2 || got.Before[0] != 1 || got.After[1] != 4 {
		t.Errorf("%+v, error %v; want the windows after the first", got, err)
	}
}

func TestSlowerFiguresAreListedFirst(t *testing.T) {
	named := func(name string) measure.Cell { return measure.Cell{Peer: name, Mix: "m", Cores: 2} }
	list := []change{
		{named("floor"), measure.Change{Before: 10, After: 20, Ratio: 2, Smallest: 2, Largest: 2}},
		{named("weir_a"), measure.Change{Before: 10, After: 10.4, Ratio: 1.04, Smallest: 1, Largest: 1.2}},
		{named("weir_b"), measure.Change{Before: 10, After: 11, Ratio: 1.1, Smallest: 1, Largest: 1.2}},
		{named("weir_c"), measure.Change{Before: 10, After: 12, Ratio: 1.2, Smallest: 1.1, Largest: 1.3}},
	}
	var out strings.Builder
	printSlower(&out, list)
	want := "2 of 3 figures are more than 5 % slower by their median; of these 1 in every round.\n\n" +
		"- weir_c, m, allowed, 2 core(s): 10.0 → 12.0 (1.20 ×, 1.10 to 1.30)\n- weir_b, m, allowed, 2 core(s): 10.0 → 11.0 (1.10 ×, 1.00 to 1.20)\n\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestAChildAnswersEachCell(t *testing.T) {
	o, err := parse([]string{"-base=x", "-quick", "-mixes=one key|never seen", "-peers=^weir_keyed_tokenbucket$", "-duration=1ms"})
	if err != nil {
		t.Fatal(err)
	}
	c := o.config()
	var cells strings.Builder
	asked := 0
	for _, lot := range measure.Lots(c) {
		if lot[0].Peer != "weir_keyed_tokenbucket" {
			continue
		}
		cells.Reset()
		for _, cell := range append(lot, lot...) {
			line, _ := json.Marshal(cell)
			cells.Write(line)
			asked++
		}
		var out strings.Builder
		if err := measure.Serve(strings.NewReader(cells.String()), &out, measure.NewWindows(c).Measure); err != nil {
			t.Fatal(err)
		}
		for answers := json.NewDecoder(strings.NewReader(out.String())); answers.More(); asked-- {
			var a struct {
				Figures float64
				Error   string
			}
			if err := answers.Decode(&a); err != nil || a.Figures <= 0 || a.Error != "" {
				t.Errorf("%v: answer %+v, error %v", lot, a, err)
			}
		}
	}
	if asked != 0 {
		t.Errorf("%d cells had no answer", asked)
	}
	var out strings.Builder
	if err := measure.Serve(strings.NewReader(`{"Peer":"gone","Mix":"one key"}`), &out, measure.NewWindows(c).Measure); err != nil || !strings.Contains(out.String(), "unknown cell") {
		t.Errorf("an unknown cell: %q, error %v", out.String(), err)
	}
}
