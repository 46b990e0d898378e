package algorithm_test

import (
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
)

const inMicros = 1000

func TestGuavaStartsWhenItIsMadeOrFirstUsedIfThatIsEarlier(t *testing.T) {
	g := algorithm.NewBursty(5, 1)
	for start, want := range map[int64]float64{0: 4, 2 * second: 0, 5 * second: 0} {
		if s := g.Take(g.Start(start), 2*second, 1); g.Stored(s) != want {
			t.Errorf("made at %d, one taken at 2 s: got %v stored, want %v", start, g.Stored(s), want)
		}
	}
	if s := g.Take(g.Fresh(), 2*second, 1); g.Stored(s) != 0 || s.B*inMicros != 2*second+second/5 {
		t.Errorf("a fresh state, first used at 2 s: got %v stored and next at %d µs, want 0 and 2.2 s", g.Stored(s), s.B)
	}
}

func TestGuavaGivesBackTimeButNoStore(t *testing.T) {
	g := algorithm.NewBursty(5, 1)
	s := g.Take(g.Start(0), 0, 10)
	s = g.Give(s, 0, 4)
	if wait := g.Wait(s, 0, 1); wait != 6*second/5 {
		t.Errorf("10 taken and 4 given back: got a wait of %d, want %d", wait, 6*second/5)
	}
	s = g.Give(s, 0, 100)
	if wait := g.Wait(s, 0, 1); wait != 0 || g.Stored(s) != 0 {
		t.Errorf("more given back than taken: got a wait of %d and %v stored, want 0 and 0", wait, g.Stored(s))
	}
}

func TestGuavaHasRoomForAllOrNothing(t *testing.T) {
	g := algorithm.NewWarmUp(5, 1e6, 3)
	s := g.Start(0)
	if room := g.Room(s, 0); room != maxCount {
		t.Errorf("untouched: got room %d, want %d", room, int64(maxCount))
	}
	s = g.Take(s, 0, 1)
	wait := g.Wait(s, 0, 1)
	if g.Room(s, wait-1) != 0 || g.Room(s, wait) != maxCount {
		t.Errorf("a wait of %d: got room %d before its end and %d at it, want 0 and %d", wait, g.Room(s, wait-1), g.Room(s, wait), int64(maxCount))
	}
}
