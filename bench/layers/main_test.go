package main

import (
	"context"
	"testing"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/internal/redistest"
)

func TestEachRowIsMeasured(t *testing.T) {
	o := &measure.Options{Window: 10 * time.Millisecond, Place: redistest.Start(t).Addr}
	names := map[string]bool{}
	all, _ := bench.Rows(o)
	for _, r := range all {
		names[r.Name()] = true
		if f, err := r.Measure(t.Context(), o); err != nil || f[callsEach] <= 0 && (f[perSecond] <= 0 || f[each] <= 0) {
			t.Errorf("%s: %v and error %v, want decisions", r.Name(), f, err)
		}
	}
	for _, target := range bench.Targets(all) {
		if c := target.Cases[0]; !names[c.Row] || len(c.Over) > 0 && !names[c.Over[0]] {
			t.Errorf("%s compares %q with %q: there is no such row", target.Name, c.Row, c.Over)
		}
	}
}

func TestADecisionThatIsNotThatOfTheRowIsAnError(t *testing.T) {
	for _, refused := range []bool{false, true} {
		r := row{callers: 2, refused: refused}
		_, _, err := r.load(t.Context(), func(context.Context, string) (bool, error) { return refused, nil }, []string{"k"}, time.Millisecond)
		if err == nil {
			t.Errorf("a row with refused %v got the other decision and no error", refused)
		}
	}
}
