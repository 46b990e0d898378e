package algorithm_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirflow/weir/internal/randtest"
)

// inputs returns how many random inputs each kind of limit gets. -short is for the race detector, which finds nothing in
// code without goroutines.
func inputs(t *testing.T) int { return randtest.Rounds(t, 500, 50) }

// TestRandomOperationsEqualTheModel runs the comparison of the fuzz targets on random inputs.
func TestRandomOperationsEqualTheModel(t *testing.T) {
	seed := randtest.Seed(t)
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			for range inputs(t) {
				input := make([]byte, 40+random.IntN(400))
				for i := range input {
					input[i] = byte(random.Uint32())
				}
				s := &source{input}
				kinds[name](s).plays(t, s)
			}
		})
	}
}

func FuzzTokenBucketEqualsTheModel(f *testing.F) { fuzzEqualsTheModel(f, "TokenBucket") }
func FuzzLeakyBucketEqualsTheModel(f *testing.F) { fuzzEqualsTheModel(f, "LeakyBucket") }
func FuzzChangingTokenBucketEqualsTheModel(f *testing.F) {
	fuzzEqualsTheModel(f, "ChangingTokenBucket")
}
func FuzzChangingLeakyBucketEqualsTheModel(f *testing.F) {
	fuzzEqualsTheModel(f, "ChangingLeakyBucket")
}
func FuzzFixedWindowEqualsTheModel(f *testing.F)   { fuzzEqualsTheModel(f, "FixedWindow") }
func FuzzFirstWindowEqualsTheModel(f *testing.F)   { fuzzEqualsTheModel(f, "FirstWindow") }
func FuzzSlidingWindowEqualsTheModel(f *testing.F) { fuzzEqualsTheModel(f, "SlidingWindow") }
func FuzzSlidingLogEqualsTheModel(f *testing.F)    { fuzzEqualsTheModel(f, "SlidingLog") }
func FuzzRateGateEqualsTheModel(f *testing.F)      { fuzzEqualsTheModel(f, "RateGate") }
func FuzzCycleEqualsTheModel(f *testing.F)         { fuzzEqualsTheModel(f, "Cycle") }
func FuzzConcurrencyEqualsTheModel(f *testing.F)   { fuzzEqualsTheModel(f, "Concurrency") }

func fuzzEqualsTheModel(f *testing.F, name string) {
	random := rand.New(rand.NewPCG(1, 2))
	for length := 16; length <= 512; length *= 2 {
		input := make([]byte, length)
		for i := range input {
			input[i] = byte(random.Uint32())
		}
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		s := &source{input}
		kinds[name](s).plays(t, s)
	})
}
