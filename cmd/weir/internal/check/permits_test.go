package check

import (
	"math"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/replay"
)

// A caller that takes all it may gets the burst at once and then the rate, and never more than the worst case.
func TestPermitsFollowTheLimit(t *testing.T) {
	for _, test := range []struct {
		text   string
		length time.Duration
		first  int64 // at once
		total  int64
	}{
		{"token bucket 10/s burst 20", 4 * time.Second, 20, 60},
		{"fixed window 100/1m", 3 * time.Minute, 100, 400}, // a quarter of a window after the start comes a boundary
		{"sliding log 5/10s", 30 * time.Second, 5, 20},
		{"leaky bucket 5/s queue 10", 4400 * time.Millisecond, 1, 23},
		{"warm up 5/s over 30s", 3 * time.Second, 1, 6},
		{"token bucket 10/s burst 20 and fixed window 25/1m", 4 * time.Second, 20, 25},
	} {
		c, err := replay.ParseCandidate(test.text)
		if err != nil {
			t.Fatal(err)
		}
		p, ok, err := permitsOf(c)
		if err != nil || !ok || p.Length != test.length {
			t.Fatalf("%s: %v, %v, for %v, want a length of %v", test.text, ok, err, p.Length, test.length)
		}
		first := int64(0)
		for _, step := range p.Steps {
			if step.At == 0 {
				first = step.Total
			}
		}
		if total := p.Steps[len(p.Steps)-1].Total; first != test.first || total != test.total {
			t.Errorf("%s: %d at once and %d in all, want %d and %d", test.text, first, total, test.first, test.total)
		}
	}
	for _, text := range []string{"unlimited", "deny all", "concurrency 5"} {
		c, err := replay.ParseCandidate(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, err := permitsOf(c); ok || err != nil {
			t.Errorf("%s: %v, %v, want no curve", text, ok, err)
		}
	}
}

// A limiter slows down between the threshold and the ceiling as Guava's curve says.
func TestAWarmUpFollowsItsThrottlingCurve(t *testing.T) {
	for _, l := range []weir.WarmUp{
		{Rate: weir.PerSecond(5), Over: 30 * time.Second},
		{Rate: weir.PerSecond(1000), Over: time.Hour, Cold: 100},
		{Rate: weir.PerMinute(6), Over: 10 * time.Minute, Cold: 1.5},
	} {
		curve, _, err := throttleOf(l)
		if err != nil {
			t.Fatal(err)
		}
		if len(curve.Measured) < 20 {
			t.Errorf("%s: %d points", l, len(curve.Measured))
		}
		for _, p := range curve.Measured {
			want := float64(curve.Stable)
			if p.Stored > curve.Threshold {
				want += (p.Stored - curve.Threshold) / (curve.Ceiling - curve.Threshold) * float64(curve.Cold-curve.Stable)
			}
			if bend := math.Abs(p.Stored-curve.Threshold) < curve.Ceiling/40; !bend && math.Abs(float64(p.Each)-want) > 0.001*want+2000 {
				t.Errorf("%s: %v between units at %v stored, want %v", l, p.Each, p.Stored, time.Duration(want))
			}
		}
	}
}

// A burst of which most is delayed beyond the picture is not asked for unit by unit.
func TestPermitsEndWithTheirLength(t *testing.T) {
	start := time.Now()
	c, err := replay.ParseCandidate("nginx limit_req 1/m burst 100000000")
	if err != nil {
		t.Fatal(err)
	}
	p, ok, err := permitsOf(c)
	if err != nil || !ok || len(p.Steps) > 2*permitSteps || p.Steps[len(p.Steps)-1].At > p.Length {
		t.Errorf("%d steps, %v, %v", len(p.Steps), ok, err)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestWhatHasNoPermitsIsNoPicture(t *testing.T) {
	for _, c := range []replay.Candidate{{}, {Limits: make([]weir.Limit, 2)}} {
		if _, ok, err := permitsOf(c); ok || err != nil {
			t.Errorf("no limits have permits, %v", err)
		}
	}
	if _, _, err := throttleOf(weir.WarmUp{}); err == nil {
		t.Error("the zero warm up has a curve, want an error")
	}
}
