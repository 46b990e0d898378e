package weir_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// A popular RateGate for .NET broke at 2^31 and 2^32 milliseconds.
func TestRateGateIsExactForAnyPeriod(t *testing.T) {
	for _, period := range []time.Duration{1, time.Second, 1<<31*time.Millisecond - 1, 1 << 31 * time.Millisecond, 1<<32*time.Millisecond + 1, weir.MaxPeriod} {
		lim, err := weir.New(weir.RateGate{Rate: weir.Per(1, period)})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Unix(1_700_000_000, 0)
		lim.TakeAt(start, 1)
		if d := lim.TakeAt(start.Add(period-1), 1); d.Allowed || d.RetryAfter != 1 {
			t.Errorf("1 in %v, 1 ns early: got %+v, want refused for 1ns", period, d)
		}
		if d := lim.TakeAt(start.Add(period), 1); !d.Allowed {
			t.Errorf("1 in %v, in time: got %+v, want allowed", period, d)
		}
	}
}

func TestRateGateBooksNoMoreThanTwiceItsLimitAhead(t *testing.T) {
	lim, err := weir.New(weir.RateGate{Rate: weir.PerSecond(2)})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(1_700_000_000, 0)
	for i, want := range []time.Duration{0, 0, 1, 1, 2, 2} {
		b, err := lim.ReserveAt(start, 1, weir.Never)
		if err != nil || !b.Decision.Allowed || b.Decision.Delay != want*time.Second {
			t.Fatalf("booking %d: got %+v and error %v, want it after %ds", i, b.Decision, err, want)
		}
	}
	b, err := lim.ReserveAt(start, 1, weir.Never)
	if err != nil || b.Decision.Allowed || b.Decision.RetryAfter != time.Second {
		t.Errorf("with 4 ahead: got %+v and error %v, want refused until one of them is gone, in 1s", b.Decision, err)
	}
	b, err = lim.ReserveAt(start.Add(time.Second), 1, weir.Never)
	if err != nil || !b.Decision.Allowed || b.Decision.Delay != 2*time.Second {
		t.Errorf("1s later: got %+v and error %v, want it after 2s", b.Decision, err)
	}
}

// The promise of a rate gate, in a loop and in parallel: at 2 a second, start i+2 is never less than a second after
// start i.
func TestRateGateKeepsStartsApartInALoopAndInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := mustNew(t, weir.RateGate{Rate: weir.PerSecond(2)})
		begin := time.Now()
		starts := make(chan time.Duration, 20)
		start := func() {
			if err := gate.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			starts <- time.Since(begin)
		}
		for i := range 10 {
			start()
			time.Sleep(time.Duration(i*i) * 17 * time.Millisecond) // work of differing length
		}
		var parallel sync.WaitGroup
		for range 10 {
			parallel.Go(start)
		}
		parallel.Wait()
		close(starts)
		var got []time.Duration
		for at := range starts {
			got = append(got, at)
		}
		if len(got) != 20 {
			t.Fatalf("%d starts, want 20", len(got))
		}
		for i := range got[2:] {
			if got[i+2]-got[i] < time.Second {
				t.Errorf("start %d at %v, start %d at %v: less than 1s apart", i, got[i], i+2, got[i+2])
			}
		}
		if last := got[19] - got[10]; last < 4*time.Second || last > 5*time.Second {
			t.Errorf("ten parallel starts took %v, want no more than the gate asks for", last)
		}
	})
}
