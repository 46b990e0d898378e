package workload

import (
	"math"
	"testing"
)

func TestKeysAreThirteenBytes(t *testing.T) {
	for _, i := range []int{0, 7, 999_999, 99_999_999} {
		if got := Key(i); len(got) != KeyBytes {
			t.Errorf("Key(%d) = %q of %d bytes, want %d", i, got, len(got), KeyBytes)
		}
	}
	if got, want := Fresh(41, 3).Key(1), Key(42); got != want {
		t.Errorf("the second of Fresh(41, 3) is %q, want %q", got, want)
	}
}

// The test counts the drawn keys one by one. The expectation does not depend on them.
func TestSequencesTouchAsManyKeysAsExpected(t *testing.T) {
	const keys, draws = 10_000, 20_000
	tests := []struct {
		name     string
		sequence *Sequence
		want     float64
	}{
		{"uniform", Uniform(keys, draws, 1), uniformDistinct(keys, draws)},
		{"zipf", Zipf(keys, draws, zipfSkew, 1), zipfDistinct(keys, draws, zipfSkew)},
		{"fresh", Fresh(0, keys), keys},
	}
	for _, tt := range tests {
		distinct := map[string]bool{}
		for i := range tt.sequence.Len() {
			distinct[tt.sequence.Key(i)] = true
		}
		if got := float64(len(distinct)); math.Abs(got-tt.want) > 0.02*tt.want {
			t.Errorf("%s: %d draws touch %v keys, want %.0f ± 2 %%", tt.name, tt.sequence.Len(), got, tt.want)
		}
	}
}

func TestMarkCountsWhatWasRead(t *testing.T) {
	seen := make([]uint64, 2)
	Fresh(10, 5).Mark(seen, 3, 4) // 13, 14, then again from the start: 10 and 11
	if got, want := seen[0], uint64(1<<13|1<<14|1<<10|1<<11); got != want {
		t.Errorf("marked %b, want %b", got, want)
	}
}

func TestAttackNeverRepeatsAKey(t *testing.T) {
	mixes := Mixes(1000)
	attack := mixes[len(mixes)-1]
	distinct := map[string]bool{}
	for _, s := range attack.Sequences() {
		for i := range s.Len() {
			distinct[s.Key(i)] = true
		}
	}
	if len(distinct) != 1000 {
		t.Errorf("%q has %d distinct keys, want 1000", attack.Name, len(distinct))
	}
}
