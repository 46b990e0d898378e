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

func TestABucketsAnswersFollowFromOneAnother(t *testing.T) {
	const third = 333333333 // a unit at 3/s, in ns
	first := exchangeAt(0, 2, answer{Allowed: true, ResetAfter: 2 * third})
	for name, tt := range map[string]struct {
		next   exchange
		missed int64
		want   string
	}{
		"a second unit at once":          {exchangeAt(2e6, 1, answer{Allowed: true, ResetAfter: 3*third - 2e6}), 0, ""},
		"a refusal":                      {exchangeAt(2e6, 2, answer{ResetAfter: 2*third - 2e6, RetryAfter: third - 2e6}), 0, ""},
		"full again":                     {exchangeAt(2e9, 3, answer{Allowed: true, ResetAfter: 3 * third}), 0, ""},
		"something that was not counted": {exchangeAt(2e6, 1, answer{Allowed: true, ResetAfter: 2*third - 2e6}), 0, "not counted"},
		"something counted twice":        {exchangeAt(2e6, 1, answer{ResetAfter: 3*third - 2e6, RetryAfter: third}), 0, "counted a cost twice"},
		"one without an answer":          {exchangeAt(2e6, 1, answer{ResetAfter: 3*third - 2e6, RetryAfter: third - 2e6}), 1, ""},
		"refused with room":              {exchangeAt(2e6, 1, answer{ResetAfter: 2*third - 2e6, RetryAfter: third}), 0, "although there was room"},
		"admitted without room":          {exchangeAt(2e6, 2, answer{Allowed: true, ResetAfter: 4*third - 2e6}), 0, "before there was room"},
		"sent to come back too late":     {exchangeAt(2e6, 2, answer{ResetAfter: 2*third - 2e6, RetryAfter: third}), 0, "to come back"},
	} {
		b := newBucketWatch(3, 1e9, 3, memoryRounding)
		if err := b.check(first); err != nil {
			t.Fatalf("%s: the first answer: %v", name, err)
		}
		if tt.missed > 0 {
			b.missed(exchange{cost: tt.missed})
		}
		expect(t, name, b.check(tt.next), tt.want)
	}
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

func TestAWindowsAnswersFollowFromOneAnother(t *testing.T) {
	first := exchangeAt(0, 2, answer{Allowed: true, Remaining: 3, ResetAfter: 1e9})
	for name, tt := range map[string]struct {
		next   exchange
		missed int64
		want   string
	}{
		"the same window":         {exchangeAt(1e8, 1, answer{Allowed: true, Remaining: 2, ResetAfter: 9e8}), 0, ""},
		"a later window":          {exchangeAt(11e8, 1, answer{Allowed: true, Remaining: 4, ResetAfter: 9e8}), 0, ""},
		"refused for the cost":    {exchangeAt(1e8, 4, answer{Remaining: 3, ResetAfter: 9e8}), 0, ""},
		"one without an answer":   {exchangeAt(1e8, 1, answer{Allowed: true, Remaining: 1, ResetAfter: 9e8}), 1, ""},
		"counted twice":           {exchangeAt(1e8, 1, answer{Allowed: true, Remaining: 1, ResetAfter: 9e8}), 0, "3 of 5 at the answer before"},
		"not counted":             {exchangeAt(1e8, 1, answer{Allowed: true, Remaining: 3, ResetAfter: 9e8}), 0, "3 of 5 at the answer before"},
		"refused with room":       {exchangeAt(1e8, 1, answer{Remaining: 3, ResetAfter: 9e8}), 0, "allowed is false"},
		"the old one, after long": {exchangeAt(11e8, 1, answer{Allowed: true, Remaining: 2, ResetAfter: 9e8}), 0, "a later one: true"},
	} {
		w := &windowWatch{count: 5, period: 1e9}
		if err := w.check(first); err != nil {
			t.Fatalf("%s: the first answer: %v", name, err)
		}
		if tt.missed > 0 {
			w.missed(exchange{cost: tt.missed})
		}
		expect(t, name, w.check(tt.next), tt.want)
	}
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
