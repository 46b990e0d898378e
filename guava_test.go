package weir_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/vectors"
)

func TestRulesRefuseBurstyAndWarmUp(t *testing.T) {
	for _, limit := range []weir.Limit{
		weir.Bursty{Rate: weir.PerSecond(5), Over: time.Second},
		weir.WarmUp{Rate: weir.PerSecond(5), Over: time.Second},
	} {
		var bad *weir.LimitError
		if _, err := weir.NewRule("rule", limit); !errors.As(err, &bad) || bad.Field != "rule" {
			t.Errorf("NewRule(%s): got error %v, want a *weir.LimitError about rule", limit, err)
		}
		if _, err := weir.NewKeyed[string](limit); err != nil {
			t.Errorf("NewKeyed(%s): got error %v, want none", limit, err)
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
	if err := validate(weir.Bursty{Rate: rate}); err != nil {
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

// guavaLine is a scenario recorded from Guava; times are in microseconds.
type guavaLine struct {
	Kind   string
	Rate   float64
	Burst  float64 `json:"max_burst_seconds"`
	WarmUp float64 `json:"warmup_us"`
	Cold   float64 `json:"cold_factor"`
	Ops    []struct {
		Op, Error  string
		T, N, Wait int64
		Timeout    int64
		OK         bool
		Rate       float64
	}
}

// TestWaitPassesGuavasVectors runs Guava's scenarios through Wait, WaitMax and SetLimit in virtual time: every caller
// sleeps as long as Guava's callers had to. A scenario ends early where a limit cannot be expressed as a Rate and a
// Duration, where a wait is longer than time itself, or where the rate changes while a caller waits: Guava keeps the
// release times of waiting callers, and Weir reschedules them.
func TestWaitPassesGuavasVectors(t *testing.T) {
	playGuava(t, func(t *testing.T, limit weir.Limit) guavaLimiter { return mustNew(t, limit) })
}

// Each key is a limiter of Guava's that was made at its first use, whatever another key does. A scenario that changes
// the rate before the first use has no such key.
func TestEachKeyPassesGuavasVectors(t *testing.T) {
	playGuava(t, func(t *testing.T, limit weir.Limit) guavaLimiter {
		return &guavaKey{Keyed: mustKeyed[string](t, limit)}
	})
}

// guavaLimiter is what the scenarios ask.
type guavaLimiter interface {
	WaitMax(ctx context.Context, n int64, longest time.Duration) error
	SetLimit(weir.Limit) error
	WaitStats() weir.WaitStats
	Close()
}

// guavaKey is one key of a Keyed, beside another one that spends as much as it may.
type guavaKey struct {
	*weir.Keyed[string]
	begun bool
}

func (g *guavaKey) WaitMax(ctx context.Context, n int64, longest time.Duration) error {
	g.begun = true
	g.AllowN("other", 1000)
	return g.Keyed.WaitMax(ctx, "one", n, longest)
}

// SetLimit changes the limit, and has the key converted as of now, as Guava's setRate does.
func (g *guavaKey) SetLimit(limit weir.Limit) error {
	if !g.begun {
		return errors.New("the key has not begun")
	}
	err := g.Keyed.SetLimit(limit)
	g.Peek("one", 0)
	return err
}

func playGuava(t *testing.T, made func(*testing.T, weir.Limit) guavaLimiter) {
	played, ops := 0, 0
	for _, file := range vectors.Files(t) {
		for _, line := range file.Dialects {
			if line.Algorithm != "guava" {
				continue
			}
			var s guavaLine
			if err := json.Unmarshal(line.Line, &s); err != nil {
				t.Fatalf("%s: %v", line.ID, err)
			}
			limit, ok := s.limit(s.Rate)
			if !ok {
				t.Logf("%s not played: a rate of %v/s over %v s or %v µs is no Rate and Duration", line.ID, s.Rate, s.Burst, s.WarmUp)
				continue
			}
			played++
			synctest.Test(t, func(t *testing.T) { ops += s.play(t, line.ID, made(t, limit)) })
		}
	}
	t.Logf("%d scenarios, %d operations", played, ops)
	if ops < 100 {
		t.Errorf("%d operations played, want hundreds", ops)
	}
}

// limit returns the scenario's limit at a rate. ok is false if no Rate and Duration express it exactly.
func (s *guavaLine) limit(perSecond float64) (weir.Limit, bool) {
	rate, ok := exactRate(perSecond)
	over := s.WarmUp * 1e3
	if s.Kind == "bursty" {
		over = s.Burst * 1e9
	}
	d := time.Duration(over)
	if !ok || float64(d) != over {
		return nil, false
	}
	if s.Kind == "bursty" {
		return weir.Bursty{Rate: rate, Over: d}, d.Seconds() == s.Burst
	}
	limit := weir.WarmUp{Rate: rate, Over: d, Cold: s.Cold}
	return limit, validate(limit) == nil
}

// exactRate finds a count and seconds whose quotient is exactly perSecond.
func exactRate(perSecond float64) (weir.Rate, bool) {
	for seconds := 1.0; seconds <= 1000; seconds++ {
		count := math.Round(perSecond * seconds)
		if count >= 1 && count/seconds == perSecond {
			rate := weir.Per(int64(count), time.Duration(seconds)*time.Second)
			return rate, validate(weir.FixedWindow{Rate: rate}) == nil
		}
	}
	return weir.Rate{}, false
}

// play runs the operations at their times and counts them.
func (s *guavaLine) play(t *testing.T, id string, lim guavaLimiter) (ops int) {
	defer lim.Close()
	start := time.Now()
	for i, op := range s.Ops {
		if op.Error != "" {
			continue // Guava's own argument errors
		}
		if op.T > math.MaxInt64/4000 || op.Wait > math.MaxInt64/4000 {
			return ops
		}
		time.Sleep(time.Until(start.Add(time.Duration(op.T) * time.Microsecond)))
		synctest.Wait()
		if op.Op == "setRate" {
			next, ok := s.limit(op.Rate)
			if !ok || lim.WaitStats().Waiting > 0 || lim.SetLimit(next) != nil {
				return ops
			}
			ops++
			continue
		}
		most := weir.Never
		if op.Op == "try" {
			most = time.Duration(min(max(op.Timeout, 0), math.MaxInt64/4000)) * time.Microsecond
		}
		asked := time.Now()
		go func() {
			err := lim.WaitMax(t.Context(), op.N, most)
			switch slept := time.Since(asked); {
			case errors.Is(err, weir.ErrClosed):
			case op.Op == "try" && !op.OK:
				if !errors.Is(err, weir.ErrWait) {
					t.Errorf("%s op %d: tryAcquire(%d, %d µs) gave %v after %v, want a refusal", id, i, op.N, op.Timeout, err, slept)
				}
			case err != nil || slept != time.Duration(op.Wait)*time.Microsecond:
				t.Errorf("%s op %d: %s(%d) at %d µs slept %v with error %v, want %d µs", id, i, op.Op, op.N, op.T, slept, err, op.Wait)
			}
		}()
		synctest.Wait()
		ops++
	}
	time.Sleep(time.Duration(math.MaxInt64 / 8)) // until all callers have returned
	synctest.Wait()
	return ops
}
