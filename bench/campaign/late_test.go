package main

import (
	"testing"
	"time"
)

func TestALateAnswerIsFound(t *testing.T) {
	for _, tt := range []struct {
		verb       string
		took, late time.Duration // of the call, and of a sleep at that time
		want       int
	}{
		{"Take", 150 * ms, 0, 0},
		{"Take", 151 * ms, 0, 1},
		{"Take", 230 * ms, 10 * ms, 0}, // the machine is late, and a call is woken several times
		{"Take", 231 * ms, 10 * ms, 1},
		{"Acquire", 150 * ms, 0, 0},
		{"Acquire", 151 * ms, 0, 1},
		{"Acquire with a rate", 151 * ms, 0, 1},
		{"Wait", 151 * ms, 0, 1},
		{"Wait for a booking", 231 * ms, 10 * ms, 1},
	} {
		b := ledger(t, "token bucket 10/s", useTake)
		b.busy.add(start, start+1, tt.late.Microseconds())
		b.add(record{Kind: recordLate, World: worldCluster, What: tt.verb, Sent: start, Answered: start + tt.took.Microseconds(), Deadline: (100 * ms).Microseconds()})
		if got := promises(b); len(got) != tt.want {
			t.Errorf("%s of %v with a deadline of 100 ms, beside sleeps late by %v: %v, want %d broken promises", tt.verb, tt.took, tt.late, got, tt.want)
		}
	}
	b := ledger(t, "token bucket 10/s", useTake)
	b.add(record{Kind: recordLeft, World: worldCluster, What: "undos", Units: 1})
	if got := promises(b); len(got) != 1 || got[0] != promiseLeft {
		t.Errorf("an undo that is left: %v, want it found", got)
	}
}
