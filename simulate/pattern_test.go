package simulate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func instants(t *testing.T, text string, length time.Duration, seed uint64) []time.Duration {
	t.Helper()
	p, err := ParsePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.Instants(length, seed)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(all) || len(all) > 0 && (all[0] < 0 || all[len(all)-1] >= length) {
		t.Fatalf("%s: the instants are not in order, or not within %v", text, length)
	}
	return all
}

func TestTrafficFollowsItsFormula(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		text   string
		length time.Duration
		want   []time.Duration
	}{
		{"constant 4/s", time.Second, []time.Duration{0, 250 * ms, 500 * ms, 750 * ms}},
		{"constant 3/s", 700 * ms, []time.Duration{0, 333333333, 666666666}},
		{"constant 1/366d", weir.MaxPeriod, []time.Duration{0}},
		{"burst 2/s for 1s every 10s", 20 * time.Second, []time.Duration{0, 500 * ms, 10000 * ms, 10500 * ms}},
		{"burst 1/s for 1s every 1s", 3 * time.Second, []time.Duration{0, 1000 * ms, 2000 * ms}},
		{"constant 1/s and burst 2/s for 600ms every 1d", 2 * time.Second, []time.Duration{0, 0, 500 * ms, 1000 * ms}},
		// from 2/s to 4/s in 2 s: the rate is 2 + t, so request i comes at -2 + sqrt(4 + 2i), and after 6 of them every 250 ms
		{"ramp 2/s to 4/s over 2s", 2600 * ms, []time.Duration{0, 449489742, 828427124, 1162277660, 1464101615, 1741657386, 2000 * ms, 2250 * ms, 2500 * ms}},
		{"ramp 10/s to 1/366d over 1s", 900 * ms, []time.Duration{0, 105572809, 225403330, 367544467, 552786404}},
		{"ramp 4/s to 4/s over 1s", time.Second, []time.Duration{0, 250 * ms, 500 * ms, 750 * ms}},
	} {
		got := instants(t, test.text, test.length, 1)
		near := func(a, b time.Duration) bool { return (a - b).Abs() <= 1 }
		if !slices.EqualFunc(got, test.want, near) {
			t.Errorf("%s for %v: %v, want %v", test.text, test.length, got, test.want)
		}
	}
}

// A ramp down sends as many requests as the integral of its rate.
func TestARampSendsTheIntegralOfItsRate(t *testing.T) {
	if got := len(instants(t, "ramp 100/s to 1/s over 1m", time.Minute, 1)); got != 3030 {
		t.Errorf("%d requests, want 50.5/s × 60 s = 3030", got)
	}
}

// The count of a Poisson process and the spread of its gaps are within five standard deviations of their mean.
func TestPoissonTrafficHasIndependentGaps(t *testing.T) {
	const mean = 50_000.0
	for seed := range uint64(5) {
		all := instants(t, "poisson 50/s", 1000*time.Second, seed)
		if n := float64(len(all)); math.Abs(n-mean) > 5*math.Sqrt(mean) {
			t.Errorf("seed %d: %v requests, want %v within %.0f", seed, n, mean, 5*math.Sqrt(mean))
		}
		longer := 0 // than the mean gap: a share of 1/e
		for i := range all[1:] {
			if all[i+1]-all[i] > 20*time.Millisecond {
				longer++
			}
		}
		share := float64(longer) / float64(len(all)-1)
		if spread := 5 * math.Sqrt(0.25/mean); math.Abs(share-1/math.E) > spread {
			t.Errorf("seed %d: %.4f of the gaps are above the mean, want %.4f within %.4f", seed, share, 1/math.E, spread)
		}
	}
}

func TestASeedDecidesTheTraffic(t *testing.T) {
	const text = "poisson 50/s and poisson 50/s"
	a, b, c := instants(t, text, time.Minute, 1), instants(t, text, time.Minute, 1), instants(t, text, time.Minute, 2)
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Error("want equal traffic of equal seeds, and different traffic of different ones")
	}
	if len(slices.Compact(a)) < len(b)*9/10 {
		t.Error("both parts have the same gaps, want independent ones")
	}
}

func TestBadTrafficTextPointsAtTheWord(t *testing.T) {
	for _, test := range []struct {
		text string
		at   int
		word string
		want string
	}{
		{"", 0, "", "constant, poisson, burst or ramp"},
		{"brust 200/s for 1s every 10s", 0, "brust", "constant, poisson, burst or ramp"},
		{"constant", 8, "", "a rate"},
		{"constant 0/s", 9, "0/s", "a rate"},
		{"constant 2000000000/s", 9, "2000000000/s", "up to 1000000000/s"},
		{"constant 1/367d", 9, "1/367d", "a rate"},
		{"constant 5/s 5/s", 13, "5/s", `"and" or the end`},
		{"constant 5/s and", 16, "", "constant, poisson"},
		{"burst 200/s  fro 1s every 10s", 13, "fro", `"for"`},
		{"burst 200/s for 1s every 10", 25, "10", "a duration"},
		{"burst 200/s for 1s every s", 25, "s", "a duration"},
		{"burst 200/s for 0s every 1s", 16, "0s", "a duration such as"},
		{"burst 200/s for 2s every 1s", 25, "1s", "a duration of at least 2s"},
		{"burst 5/s for 5s for", 17, "for", `"every"`},
		{"ramp 1/s to 5/s in 1m", 16, "in", `"over"`},
		{"constant 5/s and ramp 1/s 5/s", 26, "5/s", `"to"`},
	} {
		_, err := ParsePattern(test.text)
		syntax, ok := errors.AsType[*weir.SyntaxError](err)
		if !ok || syntax.Offset != test.at || syntax.Word != test.word || !strings.Contains(syntax.Want, test.want) || syntax.Text != test.text {
			t.Errorf("%q: %v, want %q at %d, and %s", test.text, err, test.word, test.at, test.want)
		}
	}
}

func FuzzParsePattern(f *testing.F) {
	f.Add("constant 5/s and burst 200/s for 1s every 10s")
	f.Add("ramp 1/s to 100/s over 1m and poisson 3/d")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePattern(text)
		if err != nil {
			if syntax, ok := errors.AsType[*weir.SyntaxError](err); !ok || !strings.HasPrefix(text[syntax.Offset:], syntax.Word) {
				t.Errorf("%q: %v does not point at a word", text, err)
			}
			return
		}
		const length = time.Microsecond
		all, err := p.Instants(length, 1)
		if err != nil || !slices.IsSorted(all) || len(all) > 0 && (all[0] < 0 || all[len(all)-1] >= length) {
			t.Errorf("%q: %d instants, %v, not in order or not within %v", text, len(all), err, length)
		}
	})
}

func TestTrafficIsBounded(t *testing.T) {
	p, err := ParsePattern("constant 1000000000/s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Instants(time.Second, 1); err == nil || !strings.Contains(err.Error(), "more than 10000000 requests in 1 seconds") {
		t.Errorf("a billion requests: %v, want an error", err)
	}
	for _, length := range []time.Duration{0, -1, weir.MaxPeriod + 1} {
		if _, err := p.Instants(length, 1); err == nil {
			t.Errorf("a length of %v, want an error", length)
		}
	}
}

func compare(t *testing.T, traffic string, length time.Duration, limits ...string) Comparison {
	t.Helper()
	p, err := ParsePattern(traffic)
	if err != nil {
		t.Fatal(err)
	}
	var candidates []Candidate
	for _, text := range limits {
		c, err := ParseCandidate(text)
		if err != nil {
			t.Fatal(err)
		}
		candidates = append(candidates, c)
	}
	c, err := p.Compare(candidates, length, 1)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAComparisonCountsEveryRequest(t *testing.T) {
	got := compare(t, "burst 200/s for 1s every 10s", time.Minute, "token bucket 10/s burst 20", "leaky bucket 10/s queue 20", "unlimited", "deny all", "fixed window 100/m")
	want := Comparison{Traffic: "burst 200/s for 1s every 10s", Seconds: 60, Requests: 1200, Most: [3]int64{200, 200, 1200}, Limits: []ComparisonReport{
		// 20 at once and 9 more in each second, the tenth only after it
		{Limit: "token bucket 10/s burst 20", Admitted: 174, Refused: 1026, Most: [3]int64{29, 29, 174}, Starved: 9.095},
		{Limit: "leaky bucket 10/s queue 20", Admitted: 180, Refused: 1020, Most: [3]int64{10, 30, 180}, DelayP50: 1.33, DelayP99: 2, Starved: 9.095},
		{Limit: "unlimited", Admitted: 1200, Most: [3]int64{200, 200, 1200}},
		{Limit: "deny all", Refused: 1200, Starved: 60},
		{Limit: "fixed window 100/m", Admitted: 100, Refused: 1100, Most: [3]int64{100, 100, 100}, Starved: 59.5},
	}}
	for i, limit := range got.Limits {
		if limit != want.Limits[i] {
			t.Errorf("%+v\nwant %+v", limit, want.Limits[i])
		}
	}
	got.Limits, want.Limits = nil, nil
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestALargerLimitAdmitsNoLess(t *testing.T) {
	for _, form := range []string{"token bucket %d/s", "fixed window %d/s", "sliding window %d/s", "sliding log %d/s", "cycle %d/s"} {
		var limits []string
		for n := range 100 {
			limits = append(limits, fmt.Sprintf(form, n+1))
		}
		c := compare(t, "poisson 20/s and burst 50/s for 1s every 7s", time.Minute, limits...)
		for i := range c.Limits[1:] {
			if c.Limits[i+1].Admitted < c.Limits[i].Admitted {
				t.Errorf("%s admits %d, and %s %d", c.Limits[i].Limit, c.Limits[i].Admitted, c.Limits[i+1].Limit, c.Limits[i+1].Admitted)
			}
		}
		if largest := c.Limits[len(c.Limits)-1]; c.Most[0] > 100 || largest.Refused > 0 {
			t.Errorf("%s refuses %d of %d, want none: at most %d come within a second", largest.Limit, largest.Refused, c.Requests, c.Most[0])
		}
	}
}
