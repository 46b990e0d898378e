package weir_test

import (
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestErrorsTellDurationsAsAPersonWritesThem(t *testing.T) {
	for need, want := range map[time.Duration]string{
		1500 * time.Microsecond:    "1.5ms",
		90 * time.Minute:           "1h30m",
		23 * time.Hour:             "23h",
		24 * time.Hour:             "1 day",
		25*time.Hour + time.Second: "1 day 1h0m1s",
		weir.MaxPeriod:             "366 days",
	} {
		err := &weir.WaitError{Need: need, Bound: 2 * time.Hour}
		if want = "weir: wait: it would take " + want + ", above the bound of 2h"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func TestErrorOfABookingAheadSaysWhyAndWhatToDo(t *testing.T) {
	const want = "weir: reserve: limit cannot be booked ahead: a window, a log or slots cannot promise when units come free; use a longest of 0, or Wait"
	for _, text := range []string{"fixed window 5/s", "sliding window 5/s", "sliding log 5/s", "concurrency 5"} {
		limit, err := weir.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		lim, err := weir.New(limit)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lim.Reserve(1, time.Second); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
