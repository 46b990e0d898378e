package weir_test

import (
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// The RateGate of .NET that people copy broke at 2^31 and 2^32 milliseconds.
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
