// Package randtest gives random tests their seeds and rounds, so that a normal run draws the same each time, any failure can be
// repeated, and `make random` draws other inputs.
package randtest

import (
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Variables of the environment: a seed, or fresh for one from the clock; and how many times as many rounds.
const seedVariable, timesVariable, fresh = "WEIR_SEED", "WEIR_TIMES", "fresh"

// Seed returns the seed of a test: that of WEIR_SEED, or 1. If the test fails, it logs the seed.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := first(t)
	t.Logf("%s=%d", seedVariable, seed)
	return seed
}

// Seeds returns the first seeds from that of WEIR_SEED, or 1, until the test fails. It then logs the failing seed.
func Seeds(t testing.TB, whole, short int) iter.Seq[uint64] {
	t.Helper()
	seed, rounds := first(t), Rounds(t, whole, short)
	return func(yield func(uint64) bool) {
		for range rounds {
			if !run(t, seed, yield) {
				return
			}
			seed++
		}
	}
}

// run reports whether the test passes and goes on.
func run(t testing.TB, seed uint64, yield func(uint64) bool) bool {
	defer func() { // also if the test ends within
		if t.Failed() {
			t.Logf("%s=%d", seedVariable, seed)
		}
	}()
	return yield(seed) && !t.Failed()
}

// Rounds returns how many rounds a random test draws: whole, or short with -short; WEIR_TIMES times as many.
func Rounds(t testing.TB, whole, short int) int {
	t.Helper()
	if testing.Short() {
		whole = short
	}
	text := os.Getenv(timesVariable)
	if text == "" {
		return whole
	}
	times, err := strconv.Atoi(text)
	if err != nil || times < 1 {
		t.Fatalf("randtest: %s=%q: want a whole number above 0", timesVariable, text)
	}
	return whole * times
}

// New returns a generator that goroutines may share.
func New(seed uint64) *rand.Rand { return rand.New(&source{pcg: rand.NewPCG(seed, 0)}) }

type source struct {
	mu  sync.Mutex
	pcg *rand.PCG
}

func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pcg.Uint64()
}

func first(t testing.TB) uint64 {
	t.Helper()
	switch text := os.Getenv(seedVariable); text {
	case "":
		return 1
	case fresh:
		return uint64(time.Now().UnixNano())
	default:
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("randtest: %s=%q: want a whole number, or %s", seedVariable, text, fresh)
		}
		return seed
	}
}
