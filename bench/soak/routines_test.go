package main

import (
	"strings"
	"testing"
	"time"
)

// A goroutine that ends during the run must not hide one that stays.
func TestAStrayGoroutineIsNoticedBesideOneThatEnds(t *testing.T) {
	leave, stay := make(chan struct{}), make(chan struct{})
	defer close(stay)
	go func() { <-leave }()
	earlier := routines()
	close(leave)
	go func() { <-stay }()
	if left := leftRoutines(earlier); len(left) != 1 || !strings.Contains(left[0], "chan receive") {
		t.Errorf("got %d goroutines left, want the one that stays: %q", len(left), left)
	}
}

func TestAGoroutineThatIsAboutToEndIsNotLeft(t *testing.T) {
	earlier := routines()
	go time.Sleep(20 * time.Millisecond)
	if left := leftRoutines(earlier); len(left) > 0 {
		t.Errorf("got %d goroutines left, want none: %q", len(left), left)
	}
}

// A run on a late, busy machine still has one phase, with the requested fault.
func TestTheShortestRunHasAPhase(t *testing.T) {
	c := shortly(time.Nanosecond, 1, strayRoutine)
	err := soak(c)
	if v := c.Violations(); err != nil || c.Counted("run", "phases") < 1 || len(v) != 1 || !strings.Contains(v[0].First, "goroutines are left") {
		t.Errorf("got %d phases, violations %v and error %v, want one and the stray goroutine", c.Counted("run", "phases"), v, err)
	}
}
