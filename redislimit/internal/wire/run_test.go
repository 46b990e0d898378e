package wire

import (
	"fmt"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit/internal/stored"
)

// Repeats of a decision whose keys have successive numbers, or the same one, add no bytes to a call after the first.
func TestRepeatsForSuccessiveKeysAndForOneKeyAreRuns(t *testing.T) {
	const each = 1 + len("again") + 5 // the bytes of a run
	for _, c := range []struct {
		name string
		keys []int
		runs int
	}{
		{"one decision", []int{0}, 0},
		{"successive keys", []int{0, 1, 2, 3, 4, 5}, 1},
		{"one key", []int{0, 0, 0, 0}, 1},
		{"one key after another", []int{0, 0, 0, 1, 1, 1}, 2},
		{"back to the first key", []int{0, 1, 2, 0, 1, 2}, 2},
		{"backwards", []int{0, 1, 2, 2, 1, 0}, 4},
	} {
		if runs := runsOf(t, c.keys) / each; runs != c.runs {
			t.Errorf("%s: keys %v are %d runs, want %d", c.name, c.keys, runs, c.runs)
		}
	}
}

// runsOf returns by how many bytes repeats for these keys exceed the first decision.
func runsOf(t *testing.T, keys []int) int {
	t.Helper()
	l, err := stored.NewLimit(weir.FixedWindow{Rate: weir.PerSecond(10)})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	first := 0
	for _, key := range keys {
		b.Add(&Decision{Op: OpTake, Parts: []Part{{Limit: &l, Key: fmt.Sprint("k", key), Cost: 1}}})
		if first == 0 {
			first = len(b.Args)
		}
	}
	return len(b.Args) - first
}
