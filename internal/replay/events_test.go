package replay

import (
	"cmp"
	"runtime"
	"slices"
	"testing"

	"github.com/weirflow/weir/internal/randtest"
)

// Grouped in place, events are those that a sort of all of them makes, also of a key whose events fill several blocks.
func TestEventsAreGroupedAcrossBlocks(t *testing.T) {
	random := randtest.New(1)
	for _, n := range []int{1, block, block + 1, 4*block + 17} {
		var all events
		keys := min(n, 1000)
		for i := range n {
			key := i
			if i >= keys {
				key = max(random.IntN(2*keys)-keys, 0) // half of them are of key 0
			}
			all.add(Event{int64(random.IntN(n/100 + 1)), uint32(key), uint32(random.IntN(3))})
		}
		want := slices.Collect(all.seq())
		slices.SortFunc(want, func(a, b Event) int {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.At, b.At), cmp.Compare(a.Cost, b.Cost))
		})
		var got []Event
		starts := all.group(keys)
		for key := range keys {
			got = append(got, all.part(starts[key], starts[key+1])...)
		}
		if !slices.Equal(got, want) || len(got) != n {
			t.Errorf("%d events of %d keys are in another order than sorted ones", n, keys)
		}
	}
}

func TestEventsAreNotCopiedAsTheyBecomeMore(t *testing.T) {
	const n, size = 1_000_000, 16
	var traffic Traffic
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range n {
		traffic.add(Event{int64(i), uint32(i), 1})
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > n*size*3/2 {
		t.Errorf("%d events took %d bytes, want about %d", n, got, n*size)
	}
	runtime.KeepAlive(traffic)
}
