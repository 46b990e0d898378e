package algorithm

import "testing"

// A log of a few entries is one allocation: most keys of a Zipf mix have no more.
func TestAFewEntriesOfALogAreOneAllocation(t *testing.T) {
	limit := NewSlidingLog(9, 1e9, 0, false)
	var s State
	if n := testing.AllocsPerRun(100, func() {
		s = limit.Fresh()
		for at := range int64(firstRing) {
			s = limit.Take(s, at, 1)
		}
	}); n != 1 || len(*s.Log) != 2*firstRing {
		t.Errorf("%v allocations for %d entries, want 1", n, len(*s.Log)/2)
	}
}
