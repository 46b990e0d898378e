package algorithm_test

import (
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
)

// record counts n under an identity and returns the room left.
func record(a *algorithm.Concurrency, s *algorithm.State, now, n int64, identity uint64) (room int64) {
	part := algorithm.Part{Algorithm: a, State: *s, Cost: n, Lease: identity}
	parts := []algorithm.Part{part}
	answer := algorithm.Record(parts, now)
	*s = parts[0].State
	return answer.Remaining
}

func TestLeasesAreBoundedWhateverIsRecorded(t *testing.T) {
	const slots = 10
	for _, lease := range []int64{0, 1 << 40} {
		a := algorithm.NewConcurrency(slots, lease)
		s := a.Fresh()
		for now := range int64(10_000) {
			record(a, &s, now, 1, uint64(now+1))
		}
		if got := len(*s.Log) / 3; got > 2*slots+1 {
			t.Errorf("lease %d, 10000 recorded for as many: got %d leases, want at most %d", lease, got, 2*slots+1)
		}
		if room := record(a, &s, 10_000, -10_000, 0); room != 0 {
			t.Errorf("lease %d, after units without an identity were given back: got room %d, want 0, because another identity holds 20", lease, room)
		}
		for identity := range uint64(2 * slots) {
			record(a, &s, 10_000, -1, identity+1)
		}
		if room := a.Room(s, 10_000); room != slots {
			t.Errorf("lease %d, after everybody's was given back: got room %d, want %d", lease, room, slots)
		}
	}
}

// A lease keeps its expiry when the limit's leases become shorter.
func TestLeasesKeepTheirEndsWhenTheLimitChanges(t *testing.T) {
	long, short := algorithm.NewConcurrency(2, 100), algorithm.NewConcurrency(2, 10)
	s := long.Take(long.Fresh(), 0, 1)
	s = short.Carry(long, s, 1)
	s = short.Take(s, 1, 1)
	for now, want := range map[int64]int64{2: 9, 10: 1} {
		if wait := short.Wait(s, now, 1); wait != want {
			t.Errorf("one slot at %d: got a wait of %d, want %d, for the short lease", now, wait, want)
		}
		if wait := short.Wait(s, now, 2); wait != 100-now {
			t.Errorf("two slots at %d: got a wait of %d, want %d, for the long lease", now, wait, 100-now)
		}
	}
}

func TestLeasesBeyondTheBoundEndWithTheLastOfThem(t *testing.T) {
	long, short := algorithm.NewConcurrency(1, 100), algorithm.NewConcurrency(1, 10)
	s := long.Take(long.Fresh(), 0, 2)
	s = short.Take(s, 0, 1)
	if wait := short.Wait(s, 0, 1); wait != 100 {
		t.Errorf("3 recorded of 1 slot, the last for 10: got a wait of %d, want 100", wait)
	}
}

// TestLeasesThatExpireAndFollowEachOtherAllocateNothing takes a slot at each tick, with half the slots taken.
func TestLeasesThatExpireAndFollowEachOtherAllocateNothing(t *testing.T) {
	for _, slots := range []int64{20, 100} {
		c, now := algorithm.NewConcurrency(slots, slots/2), int64(0)
		state := c.Fresh()
		take := func() {
			now++
			if allowed, _ := algorithm.Allow(c, &state, now, 1); !allowed {
				t.Fatalf("%d slots: the take at %d is refused", slots, now)
			}
		}
		for range slots {
			take()
		}
		if allocations := testing.AllocsPerRun(10, func() {
			for range 10 * slots {
				take()
			}
		}); allocations > 0 {
			t.Errorf("%d slots: %v allocations in %d takes, want none", slots, allocations, 10*slots)
		}
		if held := len(*state.Log) / 3; int64(held) != slots/2 {
			t.Errorf("%d slots: %d leases are held, want half", slots, held)
		}
	}
}
