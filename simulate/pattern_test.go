package simulate

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

func instants(t *testing.T, text string, length time.Duration, seed uint64) []time.Duration {
	t.Helper()
	p, err := ParsePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	offers, _, err := p.offers(length, seed)
	if err != nil {
		t.Fatal(err)
	}
	var all []time.Duration
	for _, o := range offers {
		all = append(all, time.Duration(o.at))
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
		// a rate of 2 - cos(2πt) a second: its integral is 2t - sin(2πt)/2π, which is whole at every half second
		{"diurnal 1/s to 3/s every 1s", 2 * time.Second, []time.Duration{0, 500 * ms, 1000 * ms, 1500 * ms}},
		// 1/s until 2 s, then 1 + e^-(t-2) a second: its integral is t + 1 - e^-(t-2), which is 3 at 2.567143290 s
		{"flash 1/s to 2/s at 2s for 1s", 3 * time.Second, []time.Duration{0, 1000 * ms, 2000 * ms, 2567143290}},
		{"storm 3 at 5s", 6 * time.Second, []time.Duration{5000 * ms, 5000 * ms, 5000 * ms}},
		{"storm 2 at 0s and constant 1/s from 3 clients cost 1 to 5 retry obeying", 2 * time.Second, []time.Duration{0, 0, 0, 1000 * ms}},
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
	for seed := range randtest.Seeds(t, 5, 5) {
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
		{"", 0, "", "constant, poisson, burst, ramp, diurnal, flash, storm or log"},
		{"brust 200/s for 1s every 10s", 0, "brust", "constant, poisson, burst, ramp, diurnal, flash, storm or log"},
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
		{"diurnal 1/s to 5/s over 1d", 19, "over", `"every"`},
		{"flash 1/s to 5/s at 1s", 22, "", `"for"`},
		{"flash 1/s to 5/s for 1s", 17, "for", `"at"`},
		{"storm 0 at 1s", 6, "0", "a whole number from 1 to 10000000"},
		{"storm +5 at 1s", 6, "+5", "a whole number"},
		{"log", 3, "", "the name of a log"},
		{"log a.log thin 0%", 15, "0%", "a percentage"},
		{"log a.log thin 5", 15, "5", "a percentage"},
		{"log a.log speed 1e3", 16, "1e3", "a factor"},
		{"log a.log from 5 clients", 10, "from", `"cost", "retry", "and" or the end`},
		{"constant 5/s from 2000000 clients", 18, "2000000", "a whole number from 1 to 1000000"},
		{"constant 5/s from 5 users", 20, "users", `"clients"`},
		{"constant 5/s from 5 clients skew NaN", 33, "NaN", "a number from 0 to 10"},
		{"constant 5/s cost 5 to 4", 23, "4", "a whole number from 5"},
		{"constant 5/s cost 5 or 9", 24, "", `"at"`},
		{"constant 5/s cost 5 cost 6", 20, "cost", `"from", "retry", "and" or the end`},
		{"constant 5/s retry", 18, "", `"obeying" or "every"`},
		{"constant 5/s retry every 1s up to many times", 34, "many", "a whole number"},
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
	f.Add("diurnal 1/h to 100/s every 1d from 10 clients skew 1.1 cost about 7 retry every 10ms jitter 5ms up to 3 times")
	f.Add("flash 1/s to 1000000000/s at 0s for 1d cost 1 or 50 at 2% and storm 5 at 1s retry obeying")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePattern(text)
		if err != nil {
			if syntax, ok := errors.AsType[*weir.SyntaxError](err); !ok || !strings.HasPrefix(text[syntax.Offset:], syntax.Word) {
				t.Errorf("%q: %v does not point at a word", text, err)
			}
			return
		}
		const length = time.Microsecond
		if len(p.Logs()) > 0 {
			return
		}
		all, _, err := p.offers(length, 1)
		inOrder := slices.IsSortedFunc(all, func(a, b offer) int { return cmp.Compare(a.at, b.at) })
		if tooMany := err != nil && strings.Contains(err.Error(), "more than"); tooMany {
			return
		}
		if err != nil || !inOrder || len(all) > 0 && (all[0].at < 0 || all[len(all)-1].at >= int64(length)) {
			t.Errorf("%q: %d requests, %v, not in order or not within %v", text, len(all), err, length)
		}
	})
}

func TestTrafficIsBounded(t *testing.T) {
	p, err := ParsePattern("constant 1000000000/s")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.offers(time.Second, 1); err == nil || !strings.Contains(err.Error(), "more than 10000000 requests in 1 seconds") {
		t.Errorf("a billion requests: %v, want an error", err)
	}
	for _, length := range []time.Duration{0, -1, weir.MaxPeriod + 1} {
		if _, _, err := p.offers(length, 1); err == nil {
			t.Errorf("a length of %v, want an error", length)
		}
	}
}
