package main

import (
	"testing"
	"time"
)

// Slots are free at 1 s while a caller stands in line, which goes or leaves later.
func TestALineThatDoesNotMoveIsFound(t *testing.T) {
	const second = time.Second
	const late = longestSleep + trips
	hang := fault{Kind: "hang", From: start + second.Microseconds(), To: start + (2 * second).Microseconds()}
	cut := fault{Kind: "connections cut in a reply", From: hang.From, To: hang.To}
	elsewhere := fault{Kind: "reshard", From: hang.From, To: hang.To, moves: 1 << 4}
	flush := fault{Kind: "script flush", From: hang.From, To: hang.To}
	for _, tt := range []struct {
		name   string
		kind   recordKind // of the wait
		units  int64      // that it waits for
		until  time.Duration
		taken  time.Duration // a second slot, from the beginning until then
		goes   time.Duration // another caller goes, or 0
		busy   time.Duration // a sleep is late by as much, at 1.5 s
		faults []fault
		want   int
	}{
		{name: "a caller goes after its sleep", until: second + late},
		{name: "a caller goes later", until: second + late + ms, want: 1},
		{name: "a caller leaves long after", until: 4 * second, want: 1},
		{name: "the machine is busy", until: 2*second + late, busy: second / hops},
		{name: "the machine is less busy", until: 2*second + late, busy: second/hops - ms, want: 1},
		{name: "another caller goes first", until: 2*second + late, goes: 2 * second},
		{name: "another caller goes, and then none", until: 2*second + late + ms, goes: 2 * second, want: 1},
		{name: "a caller of two slots of which one is free", units: 2, until: 5 * second, taken: 5 * second},
		{name: "a caller of two slots that are free", units: 2, until: 5 * second, taken: 2 * second, want: 1},
		{name: "a caller that also needs a rate", kind: recordWaitedRate, until: 5 * second},
		{name: "a hang", until: 2*second + late + longestSleep, faults: []fault{hang}},
		{name: "two at once", until: 2*second + late + longestSleep, faults: []fault{hang, hang}},
		{name: "longer after a hang", until: 2*second + late + longestSleep + ms, faults: []fault{hang}, want: 1},
		{name: "a cut", until: 2*second + late + faultsEnd, faults: []fault{cut}},
		{name: "longer after a cut", until: 2*second + late + faultsEnd + ms, faults: []fault{cut}, want: 1},
		{name: "the move of another lane", until: 4 * second, faults: []fault{elsewhere}, want: 1},
		{name: "what costs no message", until: 4 * second, faults: []fault{flush}, want: 1},
	} {
		b := ledger(t, "concurrency 2 lease 3s", useLine, tt.faults...)
		add := func(kind recordKind, units int64, from, to time.Duration) {
			b.add(record{Kind: kind, World: worldCluster, Units: units, Sent: start + from.Microseconds(), Answered: start + to.Microseconds()})
		}
		if tt.kind == 0 {
			tt.kind = recordWaited
		}
		add(tt.kind, max(tt.units, 1), 100*ms, tt.until)
		if add(recordTaken, 1, 0, second); tt.taken == 0 {
			tt.taken = second
		}
		add(recordTaken, 1, 0, tt.taken)
		if tt.goes > 0 {
			add(recordTaken, 1, tt.goes, tt.goes)
		}
		add(recordBusy, tt.busy.Microseconds(), 1500*ms, 1500*ms+tt.busy)
		got := promises(b)
		if len(got) != tt.want || tt.want > 0 && got[0] != promiseServed {
			t.Errorf("%s: %v, want %d broken promises", tt.name, got, tt.want)
		}
	}
}

// Slots whose caller got an error come back at once, or after a fault with their lease.
func TestSlotsThatNoCallerKnowsOfAreTakenUntilTheirLease(t *testing.T) {
	for _, tt := range []struct {
		lane  uint64
		until time.Duration
		want  int
	}{{1 << 4, 3 * time.Second, 1}, {1 << 3, 3 * time.Second, 0}, {1 << 3, 6 * time.Second, 1}} {
		b := ledger(t, "concurrency 1 lease 3s", useLine, fault{Kind: "reshard", From: start, To: start + 1000, moves: tt.lane})
		for kind, to := range map[recordKind]time.Duration{recordPerhapsTaken: 100 * ms, recordWaited: tt.until} {
			b.add(record{Kind: kind, World: worldCluster, Units: 1, Sent: start, Answered: start + to.Microseconds()})
		}
		if got := promises(b); len(got) != tt.want {
			t.Errorf("a reply lost in a move of the lanes %b, and a caller that waits for %v: %v, want %d broken promises", tt.lane, tt.until, got, tt.want)
		}
	}
}

func TestSubjectsOfALineAreOnItsLane(t *testing.T) {
	all, err := subjects()
	if err != nil {
		t.Fatal(err)
	}
	lanes, err := lanesOf(all)
	if err != nil {
		t.Fatal(err)
	}
	rates := 0
	for i := range all {
		if beside := all[i].beside; beside > 0 {
			rates++
			if lanes[i] != lanes[beside] || all[beside].use != useRate {
				t.Errorf("%v on lane %d beside %v on lane %d, want a rate on the same lane", &all[i], lanes[i], &all[beside], lanes[beside])
			}
		}
	}
	if rates == 0 {
		t.Error("no slots are acquired together with a rate")
	}
}
