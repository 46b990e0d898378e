package calls

import (
	"testing"
	"time"
)

// measured is a call that was sent and answered at these times of ours, and at an instant of the server's clock.
type measured struct {
	sent, answered, server, want time.Duration
}

func TestAServerClockThatStepsIsToldFromASlowCall(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for _, tt := range []struct {
		what  string
		calls []measured
	}{
		{"a clock that keeps time", []measured{{0, 1 * ms, 0, 0}, {s, s + ms, s, 0}, {60 * s, 60*s + ms, 60*s + ms, 0}}},
		{"a step forward", []measured{{0, 2 * ms, 0, 0}, {s, s + 2*ms, 61 * s, 60*s - 2*ms}, {2 * s, 2*s + ms, 62 * s, 0}}},
		{"a step back", []measured{{0, 2 * ms, 0, 0}, {s, s + 2*ms, -59 * s, -60*s + 2*ms}, {2 * s, 2*s + ms, -58 * s, 0}}},
		{"a step of half a second", []measured{{0, ms, 0, 0}, {s, s + ms, s + 500*ms, 0}}},
		{"a call of five seconds", []measured{{0, ms, 0, 0}, {s, 6 * s, s, 0}, {6 * s, 6*s + ms, 6 * s, 0}, {7 * s, 12 * s, 12 * s, 0}, {12 * s, 12*s + ms, 12 * s, 0}}},
		{"a step during a call of five seconds", []measured{{0, ms, 0, 0}, {s, 6 * s, 16 * s, 10 * s}}},
		{"a step after a call of five seconds", []measured{{0, ms, 0, 0}, {s, 6 * s, s, 0}, {7 * s, 7*s + ms, 9 * s, 2*s - ms}}},
		{"an answer that another one overtook", []measured{{0, ms, 0, 0}, {2 * s, 2*s + ms, 62 * s, 60*s - ms}, {s, 3 * s, s, 0}, {4 * s, 4*s + ms, 64 * s, 0}}},
		{"a clock that gains a tenth of a second in each minute", []measured{
			{0, ms, 0, 0}, {60 * s, 60*s + ms, 60*s + 100*ms, 0}, {120 * s, 120*s + 2*ms, 120*s + 200*ms, 0}, {900 * s, 900*s + 3*ms, 901*s - 200*ms, 0}, {1500 * s, 1500*s + ms, 1501*s + 600*ms, 0},
		}},
	} {
		var c serverClock
		for i, call := range tt.calls {
			epoch := int64(1_700_000_000_000_000)
			if got := c.measure(epoch+call.server.Microseconds(), clockOrigin.Add(call.sent), clockOrigin.Add(call.answered)); got != call.want {
				t.Errorf("%s: call %d: moved by %v, want %v", tt.what, i, got, call.want)
			}
		}
	}
}
