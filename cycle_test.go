package weir_test

import (
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestCycleTextKeepsItsOrigin(t *testing.T) {
	rate := weir.Per(50, 500*time.Millisecond)
	for text, limit := range map[string]weir.Cycle{
		"cycle 50/500ms":                 {Rate: rate},
		"cycle 50/500ms origin 250ms":    {Rate: rate, Origin: 250 * time.Millisecond},
		"cycle 50/500ms origin -7ns":     {Rate: rate, Origin: -7},
		"cycle 50/500ms origin 20000d":   {Rate: rate, Origin: 20000 * 24 * time.Hour},
		"cycle 50/500ms origin 1h0m0.5s": {Rate: rate, Origin: time.Hour + time.Second/2},
	} {
		parsed, err := weir.ParseLimit(text)
		if err != nil || parsed != weir.Limit(limit) || parsed.String() != text {
			t.Errorf("ParseLimit(%q): got %#v, printed %q, and error %v; want %#v", text, parsed, parsed, err, limit)
		}
	}
}

func TestCycleBeginsAtItsOrigin(t *testing.T) {
	for _, origin := range []time.Duration{7, 7 + 10*time.Second, 7 - 30*time.Second} {
		lim, err := weir.New(weir.Cycle{Rate: weir.Per(1, 10*time.Second), Origin: origin})
		if err != nil {
			t.Fatal(err)
		}
		lim.TakeAt(time.Unix(20, 0), 1)
		if d := lim.TakeAt(time.Unix(20, 1), 1); d.Allowed || d.RetryAfter != 6 {
			t.Errorf("origin %v, the second at 20s+1ns: got %+v, want refused until 20s+7ns", origin, d)
		}
	}
}

func TestCycleOfAnotherOriginIsAnotherState(t *testing.T) {
	lim, err := weir.New(weir.Cycle{Rate: weir.PerHour(1), Origin: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(0, 0).Add(time.Hour / 2)
	lim.TakeAt(at, 1)
	for _, c := range []struct {
		origin    time.Duration
		remaining int64
	}{{time.Hour + time.Minute, 0}, {-59 * time.Minute, 0}, {2 * time.Minute, 1}} {
		if err := lim.SetLimitAt(at, weir.Cycle{Rate: weir.PerHour(1), Origin: c.origin}); err != nil {
			t.Fatal(err)
		}
		if d := lim.PeekAt(at, 0); d.Remaining != c.remaining {
			t.Errorf("from origin 1m to %v: got %d remaining, want %d", c.origin, d.Remaining, c.remaining)
		}
	}
}
