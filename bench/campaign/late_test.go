package main

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestALateAnswerIsFound(t *testing.T) {
	for _, tt := range []struct {
		verb                  string
		took, control, waited time.Duration
		want                  int
	}{
		{"Take", 150 * ms, 0, 0, 0},
		{"Take", 151 * ms, 0, 0, 1},
		{"Take", 250 * ms, 100 * ms, 0, 0}, // the machine is as late
		{"Take", 251 * ms, 100 * ms, 0, 1},
		{"Take", 250 * ms, 20 * ms, 100 * ms, 0}, // the kernel held up other threads than the timer's
		{"Take", 251 * ms, 99 * ms, 100 * ms, 1},
		{"Acquire", 150 * ms, 0, 0, 0},
		{"Acquire", 151 * ms, 0, 0, 1},
		{"Acquire with a rate", 151 * ms, 0, 0, 1},
		{"Wait", 151 * ms, 0, 0, 1},
		{"Wait for a booking", 251 * ms, 100 * ms, 0, 1},
	} {
		b := ledger(t, "token bucket 10/s", useTake)
		b.add(record{Kind: recordLate, World: worldCluster, What: tt.verb, Sent: start, Answered: start + tt.took.Microseconds(), Deadline: (100 * ms).Microseconds(),
			Control: tt.control.Microseconds(), Waited: tt.waited.Microseconds()})
		if got := promises(b); len(got) != tt.want {
			t.Errorf("%s of %v with a deadline of 100 ms, a timer late by %v and threads that waited %v: %v, want %d broken promises", tt.verb, tt.took, tt.control, tt.waited, got, tt.want)
		}
	}
	b := ledger(t, "token bucket 10/s", useTake)
	b.add(record{Kind: recordLeft, World: worldCluster, What: "undos", Units: 1})
	if got := promises(b); len(got) != 1 || got[0] != promiseLeft {
		t.Errorf("an undo that is left: %v, want it found", got)
	}
}

// A call that is held up while the machine is idle is late; the control of a call that is not held up stays at zero.
func TestAControlTimerIsOnlyAsLateAsTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		early := startControl(time.Now(), 100*ms)
		time.Sleep(99 * ms)
		if late, passed := early.end(); late != 0 || passed {
			t.Errorf("a call that ends before its deadline: late by %v, passed %v", late, passed)
		}
		heldUp := startControl(time.Now(), 100*ms)
		time.Sleep(3 * time.Second)
		if late, passed := heldUp.end(); late != 0 || !passed {
			t.Errorf("a call that is held up for three seconds on an idle machine: late by %v, passed %v", late, passed)
		}
	})
}
