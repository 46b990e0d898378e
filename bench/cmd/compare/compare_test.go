package main

import (
	"errors"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

// A short run of one peer of each kind measures every row.
func TestRowsOfEveryKindAreMeasured(t *testing.T) {
	o := &measure.Options{Quick: true, Window: time.Millisecond}
	list, err := rows(o)
	if err != nil {
		t.Fatal(err)
	}
	some := regexp.MustCompile(`^(weir_limiter_tokenbucket|weir_keyed_tokenbucket, (one key|10k|never)|weir_memory_tokenbucket, (memory of 1M)|weir, |x_time|.* without the clock)`)
	names := map[string]bool{}
	for _, row := range list {
		if names[row.Name()] {
			t.Errorf("two rows are named %q", row.Name())
		}
		if names[row.Name()] = true; !some.MatchString(row.Name()) {
			continue
		}
		if figures, err := row.Measure(t.Context(), o); err != nil || len(figures) == 0 {
			t.Errorf("%s: %v, error %v", row.Name(), figures, err)
		}
	}
	for _, target := range targets(nil) {
		for _, c := range target.Cases {
			missing := slices.DeleteFunc(append([]string{c.Row}, c.Over...), func(name string) bool { return names[name] })
			if len(missing) == len(c.Over)+1 && target.Name != "`Keyed`, slidinglog over token bucket" {
				t.Errorf("%s: there are no rows %q", target.Name, missing)
			}
		}
	}
}

func TestRowsBesideABusyProcessAreThoseOfItsTargets(t *testing.T) {
	all, err := rows(&measure.Options{Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	var b *busyProcess
	named := map[string]bool{}
	for _, r := range b.rows(all) {
		named[r.Name()] = true
	}
	for _, target := range b.targets() {
		for _, c := range target.Cases {
			if !named[c.Row] || !slices.ContainsFunc(c.Over, func(name string) bool { return named[name] }) {
				t.Errorf("%s: the rows %q and of %q are not measured", target.Name, c.Row, c.Over)
			}
		}
	}
}

// broken answers differently from a mix.
type broken struct{ err error }

func (b broken) Take(string) (bool, error) { return b.err != nil, b.err }

func TestAWorkloadThatIsNotWhatItHadToBeFailsTheRun(t *testing.T) {
	mix := workload.Mixes(1)[0]
	refuses := peers.Peer{Name: "refuses", Kind: peers.Exact, New: func(peers.Limit) (peers.Limiter, error) { return peers.Limiter{Take: broken{}.Take}, nil }}
	if _, err := newKeyed(refuses, mix, false); err == nil {
		t.Error("a peer that refuses the first call is measured")
	}
	ask := func(b broken) window {
		return parallel(1, after(0), func(_ int, stop until) counts { return decide(stop, func() (bool, error) { return b.Take("") }) })
	}
	for name, tt := range map[string]struct {
		window
		tolerated float64
		denied    bool
		fails     bool
	}{
		"refused although allowed":  {ask(broken{}), 0, false, true},
		"refused as it must":        {ask(broken{}), 0, true, false},
		"an error although allowed": {ask(broken{errors.New("an error")}), 0, true, true},
		"tolerated":                 {ask(broken{}), 1, false, false},
	} {
		if _, err := tt.figures(peers.Peer{Kind: peers.Exact, Tolerated: tt.tolerated}, tt.denied); (err != nil) != tt.fails {
			t.Errorf("%s: got %v, want an error: %v", name, err, tt.fails)
		}
	}
}

func TestKeysThatWereNotAskedAboutAreNoticed(t *testing.T) {
	mix := &workload.Mix{Keys: 1000}
	few := workload.Uniform(10, 10_000, 1)
	if err := checkDistinct(mix, []*workload.Sequence{few}, 0, []int64{10_000}); err == nil {
		t.Error("ten keys of a thousand pass for the mix")
	}
	if err := checkDistinct(mix, mix.Sequences(), 0, []int64{10_000, 10_000}); err != nil {
		t.Errorf("the keys of the mix: %v", err)
	}
}
