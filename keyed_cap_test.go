package weir_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// cappedKeyed returns a Keyed of at most most keys whose clock stands at now.
func cappedKeyed(t *testing.T, limit weir.Limit, most int, now *int64) *weir.Keyed[int] {
	t.Helper()
	k, err := weir.NewKeyedWith[int](limit, weir.Options{MaxKeys: most, Clock: func() int64 { return *now }})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestInventedKeysShareBudgetsAtTheCapAndKnownOnesKeepTheirs(t *testing.T) {
	const most, capacity, flood = 640, 5, 20_000
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.PerDay(capacity)},
		weir.FixedWindow{Rate: weir.Per(capacity, 30*24*time.Hour)},
		weir.SlidingLog{Rate: weir.PerDay(capacity)},
	} {
		now := int64(1_700_000_000_000_000_000)
		k := cappedKeyed(t, limit, most, &now)
		for known := range most / 4 {
			k.AllowN(-1-known, 2)
		}
		admitted := 0
		for key := range flood {
			if k.AllowN(key, capacity) {
				admitted += capacity
			}
			now += int64(time.Microsecond)
		}
		if bound := (most + 256) * capacity; admitted > bound || admitted < most/2*capacity {
			t.Errorf("%v: %d units went to %d invented keys, want at most %d and not much less", limit, admitted, flood, bound)
		}
		for known := range most / 4 {
			if got := k.Peek(-1-known, 1).Remaining; got != capacity-2 {
				t.Fatalf("%v: known key %d has %d left after the flood, want %d", limit, known, got, capacity-2)
			}
		}
		if n := k.Overflow(); n == 0 || n > flood {
			t.Errorf("%v: %d decisions on shared budgets, want most of %d", limit, n, flood)
		}
		if n := k.Len(); n > most+64 {
			t.Errorf("%v: %d keys remembered, want at most %d", limit, n, most)
		}
	}
}

func TestKeysWithoutRoomWaitAndBookOnTheBudgetTheyShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, err := weir.NewKeyedWith[int](weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{MaxKeys: 1})
		if err != nil {
			t.Fatal(err)
		}
		spendAll := func() { // every group, and the key that has room, has spent its unit
			for key := range 5000 {
				k.Allow(key)
			}
		}
		spendAll()
		start := time.Now()
		b, err := k.Reserve(5000, 1, weir.Never)
		if err != nil || b.Decision.Delay != time.Second {
			t.Fatalf("booking without room: %+v, %v; want a delay of 1s", b.Decision, err)
		}
		b.Cancel(t.Context())
		if again, _ := k.Reserve(5000, 1, weir.Never); again.Decision.Delay != time.Second {
			t.Errorf("after the booking was cancelled: %+v, want a delay of 1s again", again.Decision)
		}
		if err := k.Wait(t.Context(), 5000); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("waited %v with error %v, want 2s behind the booking", time.Since(start), err)
		}
		spendAll() // otherwise the key that has room is idle by now, and may give it up
		waiting := make(chan error)
		go func() { waiting <- k.WaitN(t.Context(), 5000, 1) }()
		synctest.Wait()
		k.Close()
		if err := <-waiting; !errors.Is(err, weir.ErrClosed) {
			t.Errorf("a caller without room at Close got %v, want ErrClosed", err)
		}
	})
}

// A caller waits for a state that its key shares for lack of room. SetLimit names a faster limit.
func TestSetLimitReschedulesCallersOfSharedStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, fast := weir.SlidingLog{Rate: weir.PerHour(1)}, weir.SlidingLog{Rate: weir.PerHour(1000)}
		k, err := weir.NewKeyedWith[int](slow, weir.Options{MaxKeys: 64})
		if err != nil {
			t.Fatal(err)
		}
		const flood = 5000
		for key := range flood {
			k.Allow(key)
		}
		start := time.Now()
		time.AfterFunc(time.Minute, func() {
			if err := k.SetLimit(fast); err != nil {
				t.Error(err)
			}
		})
		if err := k.Wait(t.Context(), flood); err != nil || time.Since(start) != time.Minute {
			t.Errorf("the caller went after %v (%v), want at the change after a minute", time.Since(start), err)
		}
	})
}
