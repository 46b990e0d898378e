package measure

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// told returns a row that answers with the given figures, one after another, and notes its name.
func told(log *[]string, line string, ns ...float64) Row {
	r := Row{Group: "a group", Line: line, Ours: line == "ours"}
	r.Measure = func(context.Context, *Options) (Figures, error) {
		*log = append(*log, line)
		n := ns[0]
		ns = append(ns[1:], n)
		return Figures{"ns": n}, nil
	}
	return r
}

func benchOf(rows ...Row) *Bench {
	return &Bench{
		Program: "bench/some", Title: "Some", Reps: 3, PairReps: 2, Rounds: 1,
		Rows:    func(*Options) ([]Row, error) { return rows, nil },
		Columns: []Column{{Figure: "ns", Format: "%.0f"}},
		Targets: func([]Row) []Target {
			return []Target{{Name: "over the rival", Figure: "ns", Format: "%.1f ×", Bound: 2, Cases: []Case{{"ours, a group", []string{"rival, a group"}}}}}
		},
	}
}

func TestEachRepetitionMeasuresEveryRowAndTheReportHasAll(t *testing.T) {
	var log []string
	once := told(&log, "once", 7)
	once.Once = true
	out := filepath.Join(t.TempDir(), "report")
	if err := benchOf(told(&log, "ours", 10, 30, 20), told(&log, "rival", 10), once).Run(t.Context(), []string{"-o", out}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"ours", "rival", "once", "ours", "rival", "ours", "rival"}; !slices.Equal(log, want) {
		t.Errorf("rows were measured in the order %q, want %q", log, want)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| ours | 20 ±50 % |", "| once | 7 |", "over the rival | ≤ 2.0 × | 2.0 × (1.0 × to 3.0 ×) | reached |", "-o " + out, "3 repetitions"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
}

func TestOnlyRowsThatMatchAreMeasured(t *testing.T) {
	var log []string
	b := benchOf(told(&log, "ours", 1), told(&log, "rival", 1))
	if err := b.Run(t.Context(), []string{"-only", "^rival", "-reps", "1"}); err != nil || !slices.Equal(log, []string{"rival"}) {
		t.Errorf("-only ^rival measures %q, error %v", log, err)
	}
	for _, wrong := range [][]string{{"-only", "nothing"}, {"-only", "("}, {"-reps", "-1"}, {"word"}} {
		if err := b.Run(t.Context(), append(wrong, "-o", "-")); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

func TestCellsOfALineStandSideBySide(t *testing.T) {
	var log []string
	a, b := told(&log, "ours", 1), told(&log, "ours", 2)
	a.Column, b.Column = "allowed", "denied"
	r := NewResults([]Row{a, b})
	r.Add(a, Figures{"ns": 1})
	r.Add(b, Figures{"ns": 2, "allocations": 3})
	bench := Bench{Columns: []Column{{Figure: "ns", Format: "%.0f ns"}, {Figure: "allocations", Format: "%.0f allocs"}}}
	text := bench.text(r, &Options{Reps: 1})
	if want := "|  | allowed | denied |\n|---|---:|---:|\n| ours | 1 ns | 2 ns, 3 allocs |\n"; !strings.Contains(text, want) {
		t.Errorf("got\n%s\nwant in it\n%s", text, want)
	}
}

func TestAMissCountsOnlyOutsideTheSpread(t *testing.T) {
	var log []string
	ours, rival, other := told(&log, "ours", 1), told(&log, "rival", 1), told(&log, "other", 1)
	r := NewResults([]Row{ours, rival})
	for _, n := range []float64{2, 3, 4} {
		r.Add(ours, Figures{"ns": n})
		r.Add(rival, Figures{"ns": 1})
		r.Add(other, Figures{"ns": 4})
	}
	both := []string{rival.Name(), other.Name()}
	for _, tt := range []struct {
		target Target
		want   string
	}{
		{Target{Bound: 3, Cases: []Case{{ours.Name(), both[:1]}}}, "reached"},
		{Target{Bound: 2, Cases: []Case{{ours.Name(), both[:1]}}}, "within the spread"},
		{Target{Bound: 1.9, Cases: []Case{{ours.Name(), both[:1]}}}, "**missed**"},
		{Target{Bound: 1, Cases: []Case{{ours.Name(), both}}}, "**missed**"}, // the faster of the two is the one to beat
		{Target{Bound: 1, More: true, Cases: []Case{{ours.Name(), both}}}, "reached"},
		{Target{Bound: 2, Minus: true, Cases: []Case{{ours.Name(), both[:1]}}}, "reached"},
		{Target{Bound: 3, AtLeast: true, Cases: []Case{{ours.Name(), nil}}}, "reached"},
		{Target{Bound: 3.5, AtLeast: true, Cases: []Case{{other.Name(), nil}, {ours.Name(), nil}}}, "within the spread"}, // the worst case counts
		{Target{Bound: 5, AtLeast: true, Cases: []Case{{ours.Name(), nil}}}, "**missed**"},
		{Target{Bound: 3, Cases: []Case{{"nobody", nil}}}, "not measured"},
	} {
		tt.target.Figure, tt.target.Format = "ns", "%.1f"
		if measured, verdict := tt.target.Verdict(r); verdict != tt.want {
			t.Errorf("%+v: got %s, %s, want %s", tt.target, measured, verdict, tt.want)
		}
	}
}

// build answers with the same figure for every row and notes the rows in a log that both builds share.
type build struct {
	name string
	ns   float64
	log  *[]string
}

func (b build) Ask(row string) (Figures, error) {
	*b.log = append(*b.log, b.name+" "+row)
	return Figures{"ns": b.ns}, nil
}

func TestBuildsTakeTurnsWithinEachRow(t *testing.T) {
	var log []string
	ours, rival := told(&log, "ours", 1), told(&log, "rival", 1)
	all := found{}
	if err := all.round(t.Context(), build{"before", 1, &log}, build{"after", 2, &log}, []Row{ours, rival}, 2, &progress{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"before ours", "after ours", "after ours", "before ours", "before ours", "after ours", "after rival", "before rival", "before rival", "after rival"}
	for i := range log {
		log[i] = strings.TrimSuffix(log[i], ", a group")
	}
	if !slices.Equal(log, want) {
		t.Errorf("got %q, want %q", log, want)
	}
	text := benchOf().pairsText(&Options{}, []Row{ours, rival}, all)
	for _, want := range []string{"1 of 1 figures of Weir are more than 5 % worse by their median; of these 1 in every round", "- ours, a group, ns: 1 → 2 (2.00 ×, 2.00 to 2.00)", "| rival | 1 → 2"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
}

// fails fails to measure a row.
type fails struct{ Asker[string, Figures] }

func (fails) Ask(string) (Figures, error) { return nil, errors.New("timed out") }

func TestARowThatOnlyTheLaterBuildMeasuresIsInTheReport(t *testing.T) {
	var log []string
	ours, all := told(&log, "ours", 1), found{}
	if err := all.round(t.Context(), fails{}, build{"after", 2, &log}, []Row{ours}, 2, &progress{}); err != nil {
		t.Fatal(err)
	}
	if text := benchOf().pairsText(&Options{}, []Row{ours}, all); !strings.Contains(text, "| ours | failed → 2 |") || !strings.Contains(text, "0 of 1 figures") {
		t.Error(text)
	}
	if err := all.round(t.Context(), build{"before", 1, &log}, fails{}, []Row{ours}, 2, &progress{}); err == nil {
		t.Error("a run whose later build fails goes on")
	}
}

func TestRatiosAreThoseOfNeighbouringWindows(t *testing.T) {
	got := changeOf(Row{}, Column{}, []paired{
		{Series{10, 20, 100}, Series{11, 22, 400}},
		{Series{10, 20, 40}, Series{12, 24, 48}},
		{Series{10, 20, 40}, Series{10, 20, 40}},
	})
	if got.before != 20 || got.after != 22 || got.ratio != 1.1 || got.smallest != 1 || got.largest != 1.2 {
		t.Errorf("got %+v, want 20 to 22, 1.1 times (1 to 1.2)", got)
	}
}

func TestAChildAnswersRowByRow(t *testing.T) {
	double := func(n int) (int, error) {
		if n < 0 {
			return n, errors.New("negative")
		}
		return 2 * n, nil
	}
	var out strings.Builder
	if err := Serve(strings.NewReader("3 -1\n21"), &out, double); err != nil {
		t.Fatal(err)
	}
	want := `{"Figures":6}` + "\n" + `{"Figures":0,"Error":"negative"}` + "\n" + `{"Figures":42}` + "\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if err := Serve(strings.NewReader("three"), io.Discard, double); err == nil {
		t.Error("a row that is no number is served")
	}
}
