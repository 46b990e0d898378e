package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

// exchangeAt returns an exchange whose instant is known to within 1 ms.
func exchangeAt(at, cost int64, a answer) exchange {
	return exchange{sent: at - 5e5, received: at + 5e5, cost: cost, answer: a}
}

func expect(t *testing.T, name string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: got %v, want %q", name, err, want)
	}
}

func TestBoundsAreKeptInEveryWindow(t *testing.T) {
	check := func(limit weir.Limit, loose int64, times ...int64) error {
		a := admitted{limits: []weir.Limit{limit}}
		for _, at := range times {
			e := exchangeAt(at, 1, answer{Allowed: true})
			e.loose = loose
			a.add(e)
		}
		a.add(exchangeAt(1e12, 9, answer{}))
		return a.check()
	}
	bucket := weir.TokenBucket{Rate: weir.PerSecond(2), Burst: 3}
	expect(t, "a burst, then the rate", check(bucket, 0, 0, 0, 0, 5e8, 10e8, 15e8), "")
	expect(t, "one too early", check(bucket, 0, 0, 0, 0, 5e8, 10e8, 14e8), "units more than")
	expect(t, "the rate of a clock that was set", check(bucket, 5e8, 0, 0, 0, 5e8, 10e8, 14e8), "")
	log := weir.SlidingLog{Rate: weir.PerSecond(3)}
	expect(t, "the count", check(log, 0, 0, 1e8, 2e8, 10e8+2e6, 11e8+2e6), "")
	expect(t, "one unit too early", check(log, 0, 0, 1e8, 2e8, 10e8+2e6, 11e8-4e6), "units more than")
	window := weir.FixedWindow{Rate: weir.PerSecond(2)}
	expect(t, "two windows meet", check(window, 0, 0, 1e6, 2e6, 3e6), "")
	expect(t, "more than two windows", check(window, 0, 0, 1e6, 2e6, 3e6, 4e6), "units more than")
}

func TestSecondsAreReadToTheNanosecond(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1": 1e9, "0.000000001": 1, "12.5": 125e8, "31622400.123456789": 31622400123456789} {
		n := json.Number(text)
		if got, err := nanoseconds(&n); err != nil || got != want {
			t.Errorf("%s: got %d and %v, want %d", text, got, err, want)
		}
	}
	if got, err := nanoseconds(nil); err != nil || got != never {
		t.Errorf("null: got %d and %v, want %d", got, err, int64(never))
	}
}
