package weir_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

func TestCycleTextKeepsItsBeginning(t *testing.T) {
	rate := weir.Per(50, 500*time.Millisecond)
	for text, limit := range map[string]weir.Cycle{
		"cycle 50/500ms":                 {Rate: rate},
		"cycle 50/500ms origin 250ms":    {Rate: rate, Origin: 250 * time.Millisecond},
		"cycle 50/500ms origin -7ns":     {Rate: rate, Origin: -7},
		"cycle 50/500ms origin 20000d":   {Rate: rate, Origin: 20000 * 24 * time.Hour},
		"cycle 50/500ms origin 1h0m0.5s": {Rate: rate, Origin: time.Hour + time.Second/2},
		"cycle 50/500ms from first use":  {Rate: rate, FromFirstUse: true},
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
	at := time.Unix(0, 0).Add(time.Hour / 2)
	lim := mustNew(t, weir.Cycle{Rate: weir.PerHour(1), Origin: time.Minute}, weir.Options{Clock: at.UnixNano})
	lim.Take(1)
	for _, c := range []struct {
		origin    time.Duration
		remaining int64
	}{{time.Hour + time.Minute, 0}, {-59 * time.Minute, 0}, {2 * time.Minute, 1}} {
		if err := lim.SetLimit(weir.Cycle{Rate: weir.PerHour(1), Origin: c.origin}); err != nil {
			t.Fatal(err)
		}
		if d := lim.Peek(0); d.Remaining != c.remaining {
			t.Errorf("from origin 1m to %v: got %d remaining, want %d", c.origin, d.Remaining, c.remaining)
		}
	}
}

// ownCycle is three permits each second, from the first use on.
var ownCycle = weir.Cycle{Rate: weir.PerSecond(3), FromFirstUse: true}

func TestACycleFromFirstUseBeginsWithTheFirstAdmittedCost(t *testing.T) {
	first := time.Unix(1_700_000_000, 123_456_789)
	lim, keyed := mustNew(t, ownCycle), mustKeyed[string](t, ownCycle)
	for name, take := range map[string]func(time.Time, int64) weir.Decision{
		"Limiter": lim.TakeAt,
		"Keyed":   func(at time.Time, n int64) weir.Decision { return keyed.TakeAt(at, "a", n) },
	} {
		take(first.Add(-time.Minute), 0) // neither of these is a use
		take(first.Add(-time.Second), 4)
		for _, step := range []struct {
			at      time.Duration
			n       int64
			allowed bool
			retry   time.Duration
		}{
			{0, 2, true, 0},
			{time.Second - 1, 2, false, 1},
			{time.Second - 1, 1, true, 0},
			{time.Second, 3, true, 0},
			{time.Second + 1, 1, false, time.Second - 1},
			{77*time.Second + time.Second/2, 3, true, 0}, // idleness does not move the cycles
			{77*time.Second + time.Second/2, 1, false, time.Second / 2},
			{-time.Second, 1, false, 79 * time.Second}, // nor does time that runs back
		} {
			if d := take(first.Add(step.at), step.n); d.Allowed != step.allowed || d.RetryAfter != step.retry {
				t.Errorf("%s, %d at %v: got %+v, want %v and %v", name, step.n, step.at, d, step.allowed, step.retry)
			}
		}
	}
}

func TestACycleFromFirstUseAnswersLikeACycleWithThatOrigin(t *testing.T) {
	for seed := range randtest.Seeds(t, 20, 20) {
		random := rand.New(rand.NewPCG(seed, 0))
		start := time.Unix(random.Int64N(2e9)-1e9, random.Int64N(1e9))
		rate := weir.Per(1+random.Int64N(5), time.Duration(1+random.Int64N(int64(time.Minute))))
		own, fixed := mustNew(t, weir.Cycle{Rate: rate, FromFirstUse: true}), mustNew(t, weir.Cycle{Rate: rate, Origin: time.Duration(start.UnixNano())})
		for i, at := 0, start; i < 500; i, at = i+1, at.Add(time.Duration(random.Int64N(int64(rate.Period)))) {
			n := 1 + random.Int64N(rate.Count)
			var got, want any
			switch random.IntN(4) {
			case 0:
				r, _ := own.ReserveAt(at, n, 3*rate.Period)
				s, _ := fixed.ReserveAt(at, n, 3*rate.Period)
				got, want = r.Decision, s.Decision
			case 1:
				got, want = own.ReturnAt(at, n), fixed.ReturnAt(at, n)
			case 2:
				got, want = own.RecordAt(at, n), fixed.RecordAt(at, n)
			default:
				got, want = own.TakeAt(at, n), fixed.TakeAt(at, n)
			}
			if i == 0 {
				own.TakeAt(at, 1) // the first use
				fixed.TakeAt(at, 1)
			}
			if got != want {
				t.Fatalf("seed %d, step %d, %v: got %+v, want %+v", seed, i, rate, got, want)
			}
		}
	}
}

func TestACycleFromFirstUseKeepsItsBeginningWhenItsCountChanges(t *testing.T) {
	first := time.Unix(1_700_000_000, 5e8)
	later := first.Add(time.Second / 4)
	lim := mustNew(t, ownCycle, weir.Options{Clock: later.UnixNano})
	lim.TakeAt(first, 3)
	for _, c := range []struct {
		limit weir.Cycle
		retry time.Duration
	}{
		{weir.Cycle{Rate: weir.PerSecond(2), FromFirstUse: true}, 3 * time.Second / 4},
		{weir.Cycle{Rate: weir.PerSecond(2)}, 0}, // another state
	} {
		if err := lim.SetLimit(c.limit); err != nil {
			t.Fatal(err)
		}
		if d := lim.Peek(1); d.RetryAfter != c.retry {
			t.Errorf("%v: got %+v, want a wait of %v", c.limit, d, c.retry)
		}
	}
}

func TestResetEndsTheCyclesOfAFirstUse(t *testing.T) {
	first := time.Unix(1_700_000_000, 0)
	now := first.UnixNano()
	lim, err := weir.NewWith(ownCycle, weir.Options{Clock: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	lim.Take(3)
	now += int64(time.Second / 4)
	lim.Reset()
	now += int64(time.Second / 4)
	lim.Take(3)
	if d := lim.Peek(1); d.RetryAfter != time.Second {
		t.Errorf("after a reset and three permits: got %+v, want a wait of a second", d)
	}
}

// Rules and engines evict keys.
func TestRulesRefuseACycleFromFirstUse(t *testing.T) {
	var bad *weir.LimitError
	if _, err := weir.NewRule("rule", ownCycle); !errors.As(err, &bad) || bad.Field != "rule" {
		t.Errorf("got error %v, want a *weir.LimitError about rule", err)
	}
	if weir.Describe(ownCycle).InRules || !weir.Describe(weir.Cycle{Rate: ownCycle.Rate}).InRules {
		t.Error("Describe: want InRules false for the cycle from first use, and true for one with an origin")
	}
	part, err := weir.Kit.Share(ownCycle, 0, 3)
	if want := (weir.Cycle{Rate: weir.PerSecond(1), FromFirstUse: true}); err != nil || part != weir.Limit(want) {
		t.Errorf("a third: got %v and error %v, want %v", part, err, want)
	}
}
