package weir_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestBurstyAndWarmUpAreForOneSubject(t *testing.T) {
	for _, limit := range []weir.Limit{
		weir.Bursty{Rate: weir.PerSecond(5), Over: time.Second},
		weir.WarmUp{Rate: weir.PerSecond(5), Over: time.Second},
	} {
		var bad *weir.LimitError
		if _, err := weir.NewRule("rule", limit); !errors.As(err, &bad) || bad.Field != "rule" {
			t.Errorf("NewRule(%s): got error %v, want a *weir.LimitError about rule", limit, err)
		}
		if _, err := weir.NewKeyed[string](limit); !errors.As(err, &bad) || bad.Field != "keyed" {
			t.Errorf("NewKeyed(%s): got error %v, want a *weir.LimitError about keyed", limit, err)
		}
		if _, err := weir.New(limit); err != nil {
			t.Errorf("New(%s): got error %v, want none", limit, err)
		}
	}
}

func TestBurstyHasNoLargestCost(t *testing.T) {
	lim, err := weir.New(weir.Bursty{Rate: weir.PerSecond(5), Over: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_000_000, 0)
	if d := lim.TakeAt(at, 100); !d.Allowed || d.Limit != weir.MaxCount || d.Remaining != 0 {
		t.Errorf("100 at once: got %+v, want allowed, a limit of MaxCount and nothing remaining", d)
	}
	if d := lim.TakeAt(at, 1); d.Allowed || d.RetryAfter != 20*time.Second {
		t.Errorf("one more: got %+v, want refused for 20s", d)
	}
	if d := lim.TakeAt(at.Add(20*time.Second), 1); !d.Allowed {
		t.Errorf("one more after 20s: got %+v, want allowed", d)
	}
}

func TestGuavasLimitsOutOfBoundsAreRefused(t *testing.T) {
	rate := weir.PerSecond(5)
	for field, limits := range map[string][]weir.Limit{
		"over": {
			weir.Bursty{Rate: rate, Over: -1}, weir.Bursty{Rate: rate, Over: weir.MaxPeriod + 1},
			weir.WarmUp{Rate: rate}, weir.WarmUp{Rate: rate, Over: 999}, weir.WarmUp{Rate: rate, Over: weir.MaxPeriod + 1},
		},
		"cold": {
			weir.WarmUp{Rate: rate, Over: time.Second, Cold: 0.9}, weir.WarmUp{Rate: rate, Over: time.Second, Cold: -3},
			weir.WarmUp{Rate: rate, Over: time.Second, Cold: math.NaN()}, weir.WarmUp{Rate: rate, Over: time.Second, Cold: math.Inf(1)},
		},
		"rate": {weir.Bursty{Rate: weir.PerSecond(0)}, weir.WarmUp{Rate: weir.PerSecond(weir.MaxRate + 1), Over: time.Second}},
	} {
		for _, limit := range limits {
			wantLimitError(t, limit, field)
		}
	}
	if err := (weir.Bursty{Rate: rate}).Validate(); err != nil {
		t.Errorf("bursty over 0s: got error %v, want none: it stores nothing", err)
	}
}

func TestBadTextOfTimedLimitsIsPointedAt(t *testing.T) {
	const number = "want a number such as 3 or 2.5"
	for text, want := range map[string]string{
		"bursty 5/s":                   `weir: "bursty 5/s" ends where "over" should follow; did you mean "bursty 5/s over 1s"?`,
		"warm 5/s":                     `weir: "warm 5/s": unexpected "5/s" at byte 6, want "up"`,
		"warm up 5/s over":             `weir: "warm up 5/s over" ends where a duration such as 500ms, 10s or 30d should follow`,
		"warm up 5/s over 4s cold 3e0": `weir: "warm up 5/s over 4s cold 3e0": unexpected "3e0" at byte 26, ` + number,
		"warm up 5/s over 4s cold Inf": `weir: "warm up 5/s over 4s cold Inf": unexpected "Inf" at byte 26, ` + number,
		"warm up 5/s over 4s cold -3":  `weir: "warm up 5/s over 4s cold -3": unexpected "-3" at byte 26, ` + number + `; did you mean "warm up 5/s over 4s cold 3"?`,
		"warm up 5/s over 4s cold 0":   `weir: "warm up 5/s over 4s cold 0": unexpected "0" at byte 26, ` + number,
		"warm up 5/s over 4s cold 0.5": "weir: warm up 5/s over 4s cold 0.5: cold 0.5 is not within 1 and 1000000",
		"warm up 5/s over 0s":          "weir: warm up 5/s over 0s: over 0s is not within 1us and 366 days",
		"concurrency":                  `weir: "concurrency" ends where a whole number should follow`,
		"concurrency 20/s":             `weir: "concurrency 20/s": unexpected "20/s" at byte 13, want a whole number`,
		"concurrency 20 leases":        `weir: "concurrency 20 leases": unexpected "leases" at byte 16, want "lease", "and" or the end`,
		"concurrency 0":                "weir: concurrency 0: slots 0 is not within 1 and 9007199254740992",
		"cycle 5/s origin":             `weir: "cycle 5/s origin" ends where a duration such as 500ms, 10s or 30d should follow`,
		"rate door 5/s":                `weir: "rate door 5/s": unexpected "door" at byte 6, want "gate"`,
		"rate gate 5/s burst 3":        `weir: "rate gate 5/s burst 3": unexpected "burst" at byte 15, want "and" or the end`,
	} {
		if limit, err := weir.ParseLimit(text); err == nil || err.Error() != want {
			t.Errorf("ParseLimit(%q): got %v and error\n%v, want\n%s", text, limit, err, want)
		}
	}
}
