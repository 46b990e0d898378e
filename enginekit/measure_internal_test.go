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

// Measure measures a bucket in one go, and every other algorithm by its functions. Both measure the same.
func TestABucketIsMeasuredAsByItsFunctions(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var measured, admitted int
	for range 100_000 {
		bucket := weir.TokenBucket{Rate: weir.Per(1+random.Int64N(7), time.Duration(1+random.Int64N(30))*time.Microsecond), Burst: 1 + random.Int64N(5)}
		if random.IntN(4) == 0 {
			bucket.Burst = weir.MaxCount
		}
		f, err := FunctionsOf(bucket, time.Microsecond)
		if err != nil {
			t.Fatal(err)
		}
		const start = int64(1) << 40
		s := f.Fresh()
		for range random.IntN(5) {
			s = f.Take(s, start+random.Int64N(30), 1+random.Int64N(bucket.Burst), 0)
		}
		if random.IntN(4) == 0 {
			s = f.Book(s, start, 1, f.Hold(s, start, 1))
		}
		now, m := start+random.Int64N(90), Measure{Cost: 1 + random.Int64N(bucket.Burst), Delay: time.Hour}
		wrote, want := random.IntN(2) == 0, m
		f.Measure(&m, &s, now, time.Microsecond, wrote)
		want.Capacity, want.Delay = bucket.Burst, 0
		f.measure(&want, s, now, time.Microsecond, wrote)
		if m != want {
			t.Fatalf("of %v at %d: got %+v, want %+v", bucket, now-start, m, want)
		}
		if measured++; m.Before == 0 {
			admitted++
		}
	}
	if admitted < measured/10 || admitted > measured*9/10 {
		t.Errorf("%d of %d costs fit: want some of both", admitted, measured)
	}
}

// The numbers of a state may be those of another rate.
func TestABucketOfAnotherRateIsMeasuredAsByItsFunctions(t *testing.T) {
	functions := func(count int64) Functions {
		f, err := FunctionsOf(weir.TokenBucket{Rate: weir.Per(count, time.Second), Burst: 10}, time.Microsecond)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	before, after := functions(3), functions(7)
	s := before.Take(before.Fresh(), 1000, 8, 0)
	for cost := range int64(12) {
		m := Measure{Cost: cost}
		want := m
		after.Measure(&m, &s, 1500, time.Microsecond, true)
		want.Capacity = 10
		after.measure(&want, s, 1500, time.Microsecond, true)
		if m != want {
			t.Errorf("of a cost of %d: got %+v, want %+v", cost, m, want)
		}
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
