package measure

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestRatiosAreThoseOfNeighbouringWindows(t *testing.T) {
	got := ChangeOf([]Paired{
		{Before: Series{10, 20, 100}, After: Series{11, 22, 400}},
		{Before: Series{10, 20, 30}, After: Series{12, 24, 36}},
		{Before: Series{10, 20, 30}, After: Series{10, 20, 30}},
	})
	want := Change{20, 22, 1.1, 1, 1.2}
	for _, d := range []float64{got.Before - want.Before, got.After - want.After, got.Ratio - want.Ratio, got.Smallest - want.Smallest, got.Largest - want.Largest} {
		if math.Abs(d) > 1e-9 {
			t.Fatalf("got %+v, want %+v", got, want)
		}
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
	if err := Serve(strings.NewReader("three"), &out, double); err == nil {
		t.Error("a row that is no number is served")
	}
}
