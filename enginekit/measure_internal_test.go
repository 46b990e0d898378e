package enginekit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// randomMeasure returns measurements as an engine makes them, with small numbers, so that many are equal.
func randomMeasure(random *rand.Rand) Measure {
	wait := func() time.Duration { return max(time.Duration(random.IntN(6)-2), 0) }
	return Measure{
		Cost:         random.Int64N(5),
		Capacity:     random.Int64N(4),
		Before:       wait(),
		After:        wait(),
		ResetAfter:   wait(),
		GapLeft:      wait(),
		Remaining:    random.Int64N(4),
		Delay:        wait(),
		CountsDenied: random.IntN(2) == 0,
		Full:         random.IntN(2) == 0,
	}
}

// Compose answers a plain Take without the verbs of all engines. Its answer is theirs.
func TestAPlainTakeIsAnsweredAsByTheVerbs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	plain := [2]int{}
	for range 100_000 {
		m := randomMeasure(random)
		if !m.plain() {
			continue
		}
		got, binding := Compose(weir.OpTake, []*Measure{&m})
		want, _ := compose(weir.OpTake, []*Measure{&m})
		if got != want || binding != 0 {
			t.Fatalf("of %+v: got %+v, want %+v", m, got, want)
		}
		if got.Allowed {
			plain[0]++
		} else {
			plain[1]++
		}
	}
	if plain[0] < 1000 || plain[1] < 1000 {
		t.Errorf("%d admitted and %d refused, want 1000 of each", plain[0], plain[1])
	}
}

func TestAMeasuredTimeSaturates(t *testing.T) {
	for ticks, want := range map[int64]time.Duration{0: 0, 5: 5000, -5: -5000, math.MaxInt64 / 1000: math.MaxInt64 / 1000 * 1000, math.MaxInt64/1000 + 1: weir.Never, math.MaxInt64: weir.Never} {
		if got := duration(ticks, time.Microsecond); got != want {
			t.Errorf("%d us are %d ns, want %d", ticks, got, want)
		}
	}
}

func BenchmarkCompose(b *testing.B) {
	m := Measure{Cost: 1, Capacity: 5, Remaining: 4, ResetAfter: time.Second}
	measures := []*Measure{&m}
	for name, compose := range map[string]func(weir.Op, []*Measure) (weir.Decision, int){"Compose": Compose, "verbs": compose} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				compose(weir.OpTake, measures)
			}
		})
	}
}
