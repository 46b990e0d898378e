package trial

import (
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestBoundsAreThoseOfTheGuarantees(t *testing.T) {
	rate := weir.Per(10, 4)
	for _, tt := range []struct {
		limit  weir.Limit
		lo, hi int64
		want   float64
	}{
		{weir.TokenBucket{Rate: rate, Burst: 3}, 0, 0, 3},
		{weir.TokenBucket{Rate: rate, Burst: 3}, -1, 1, 3 + 5},
		{weir.LeakyBucket{Rate: rate, Queue: 3}, 0, 4, 4 + 10},
		{weir.FixedWindow{Rate: rate}, 0, 3, 10},
		{weir.FixedWindow{Rate: rate}, -1, 0, 20},
		{weir.Cycle{Rate: rate, Origin: 2}, 1, 2, 20},
		{weir.SlidingLog{Rate: rate}, 3, 6, 10},
		{weir.RateGate{Rate: rate}, 3, 7, 20},
		{weir.Concurrency{Slots: 10, Lease: 4}, 3, 7, 20},
	} {
		if got := Bounds([]weir.Limit{tt.limit}, 1)[0].Most(tt.lo, tt.hi); got != tt.want {
			t.Errorf("%s from %d to %d: got %v, want %v", tt.limit, tt.lo, tt.hi, got, tt.want)
		}
	}
}

func TestTheReportHasCountsTimesAndBrokenPromises(t *testing.T) {
	for name, tt := range map[string]struct {
		args string
		run  func(*Trial) error
		code int
		out  string
		errs string
	}{
		"kept": {"-duration 1s -seed 7", func(c *Trial) error {
			c.Count("callers", "calls", 3)
			c.Count("callers", "calls", 4)
			c.Timed("a call", 5*time.Millisecond)
			return nil
		}, 0, "callers  7 calls\n\ntimes   median  99 %  99.99 %  longest\na call  5ms", ""},
		"broken": {"-duration 1s -seed 7 -lanes 3", func(c *Trial) error {
			c.Break("a promise", "by %d", 1)
			c.Break("a promise", "by %d", 2)
			return nil
		}, 1, "1 promises were broken:\n- a promise (2 times, first after 0s): by 1\n", "repeat with: go run ./bench/some -duration 1s -lanes 3 -seed 7\n"},
		"failed":  {"", func(*Trial) error { return errors.New("no server") }, 2, "", "bench/some: no server\n"},
		"misused": {"-break everything", nil, 2, "", "nothing of that name can be broken; choose one of one"},
		"endless": {"-duration -1s", nil, 2, "", "-duration -1s is not positive"},
	} {
		c := &Trial{Program: "bench/some", Duration: time.Minute, Faults: []string{"one"}, Quiet: true}
		var out, errs strings.Builder
		code := c.Main(strings.Fields(tt.args), &out, &errs, func(flags *flag.FlagSet) { flags.Int("lanes", 1, "") }, func() error { return tt.run(c) })
		if code != tt.code || !strings.Contains(out.String(), tt.out) || !strings.Contains(errs.String(), tt.errs) {
			t.Errorf("%s: got status %d, %q and %q; want %d, %q and %q", name, code, out.String(), errs.String(), tt.code, tt.out, tt.errs)
		}
	}
}

// The tree finds the same windows as a search of all of them.
func TestTheWorstWindowIsThatOfASearchOfAll(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		var used, reliefs []Span
		for range 1 + r.IntN(30) {
			from := r.Int64N(200)
			used = append(used, Span{From: from, To: from + r.Int64N(20), Units: float64(1 + r.IntN(5))})
		}
		for range r.IntN(4) {
			from := r.Int64N(200)
			reliefs = append(reliefs, Span{From: from, To: from + r.Int64N(40), Units: float64(1 + r.IntN(9))})
		}
		rate, period := []float64{0, 0.1}[r.IntN(2)], []int64{0, 50}[r.IntN(2)]
		got, want := worstWindow(used, reliefs, 7, rate, period), slowestWindow(used, reliefs, 7, rate, period)
		if math.Abs(got.Over-want) > 1e-6 {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
	}
}

func slowestWindow(used, reliefs []Span, units, rate float64, period int64) float64 {
	worst := math.Inf(-1)
	for _, a := range used {
		for _, c := range used {
			from, to := a.From, c.To
			if from > to || period > 0 && to-from >= period {
				continue
			}
			over := -units - rate*float64(to-from+1)
			for _, u := range used {
				if u.From >= from && u.To <= to {
					over += u.Units
				}
			}
			for _, r := range reliefs {
				if r.From <= to && r.To >= from {
					over -= r.Units
				}
			}
			worst = max(worst, over)
		}
	}
	return worst
}
