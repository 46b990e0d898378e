package randtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorder is a test that another one watches.
type recorder struct {
	testing.TB
	logged []string
	failed bool
}

func (r *recorder) Helper()      {}
func (r *recorder) Failed() bool { return r.failed }
func (r *recorder) Logf(format string, args ...any) {
	r.logged = append(r.logged, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Logf(format, args...)
	panic(r)
}

func TestANormalRunDrawsTheSameEachTime(t *testing.T) {
	t.Setenv(seedVariable, "")
	if one, other := Seed(t), Seed(t); one != 1 || other != 1 {
		t.Errorf("seeds %d and %d, want 1", one, other)
	}
}

func TestASeedOfTheEnvironmentRepeatsARun(t *testing.T) {
	t.Setenv(seedVariable, "18446744073709551615")
	if seed := Seed(t); seed != 1<<64-1 {
		t.Errorf("seed %d, want the largest", seed)
	}
	if seeds := slices.Collect(Seeds(t, 2, 2)); seeds[0] != 1<<64-1 || seeds[1] != 0 {
		t.Errorf("seeds %d, want the largest and the one after it", seeds)
	}
}

func TestFreshSeedsDiffer(t *testing.T) {
	t.Setenv(seedVariable, fresh)
	one := Seed(t)
	for other := one; other == one; other = Seed(t) { // a clock may stand for a while
	}
}

func TestSeedsEndWithTheOneThatFails(t *testing.T) {
	t.Setenv(seedVariable, "7")
	t.Setenv(timesVariable, "")
	r, drawn := &recorder{TB: t}, 0
	for seed := range Seeds(r, 5, 5) {
		drawn++
		r.failed = seed == 9
	}
	if drawn != 3 || !slices.Equal(r.logged, []string{"WEIR_SEED=9"}) {
		t.Errorf("%d seeds and %q, want 3 seeds and the last one's number", drawn, r.logged)
	}
}

func TestASeedWhoseTestEndsAtOnceIsNamed(t *testing.T) {
	t.Setenv(seedVariable, "")
	t.Setenv(timesVariable, "")
	r := &recorder{TB: t}
	var ended sync.WaitGroup
	ended.Go(func() {
		defer func() { _ = recover() }()
		for range Seeds(r, 5, 5) {
			r.failed = true
			r.Fatalf("broken")
		}
	})
	ended.Wait()
	if !slices.Equal(r.logged, []string{"broken", "WEIR_SEED=1"}) {
		t.Errorf("said %q, want what was broken and the seed", r.logged)
	}
}

func TestWordsThatAreNoNumbersAreRefused(t *testing.T) {
	for variable, draw := range map[string]func(testing.TB){
		seedVariable:  func(t testing.TB) { Seed(t) },
		timesVariable: func(t testing.TB) { Rounds(t, 1, 1) },
	} {
		t.Setenv(variable, "many")
		r := &recorder{TB: t}
		func() {
			defer func() { _ = recover() }()
			draw(r)
		}()
		if said := strings.Join(r.logged, ""); !strings.Contains(said, variable+`="many": want a whole number`) {
			t.Errorf("%s: said %q", variable, said)
		}
		t.Setenv(variable, "")
	}
}

func TestTimesMultiplyRounds(t *testing.T) {
	t.Setenv(timesVariable, "50")
	if n := Rounds(t, 3, 3); n != 150 {
		t.Errorf("%d rounds, want 150", n)
	}
}
