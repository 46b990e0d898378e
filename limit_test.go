package weir_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/vectors"
)

// The modes of an interval timer differ in what happens after missed ticks (Tokio's MissedTickBehavior has the same
// three). Here the limit makes that choice. The caller below wants a tick every 100 ms. It is busy from 100 ms to 450
// ms, misses the ticks of 200, 300 and 400 ms, and then keeps up.

func ticksAfterThreeMissed(t *testing.T, limit func(start time.Time) weir.Limit) (at []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(37 * time.Millisecond) // not at a round time
		start := time.Now()
		lim := mustNew(t, limit(start))
		// A bucket starts full; an interval starts with a single tick.
		lim.AllowN(lim.Peek(0).Limit - 1)
		for range 8 {
			if err := lim.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			at = append(at, time.Since(start)/time.Millisecond)
			if len(at) == 2 {
				time.Sleep(350 * time.Millisecond)
			}
		}
	})
	return at
}

func TestMissedTicksAreMadeUpForByATokenBucket(t *testing.T) {
	got := ticksAfterThreeMissed(t, func(time.Time) weir.Limit {
		return weir.TokenBucket{Rate: weir.Per(1, 100*time.Millisecond), Burst: 10}
	})
	// Burst: the missed ones at once, and then as if nothing had happened.
	if want := []time.Duration{0, 100, 450, 450, 450, 500, 600, 700}; !slices.Equal(got, want) {
		t.Errorf("ticks at %d ms, want %d", got, want)
	}
}

func TestMissedTicksAreMadeUpForNoFurtherThanTheBurst(t *testing.T) {
	got := ticksAfterThreeMissed(t, func(time.Time) weir.Limit {
		return weir.TokenBucket{Rate: weir.Per(1, 100*time.Millisecond), Burst: 2}
	})
	if want := []time.Duration{0, 100, 450, 450, 550, 650, 750, 850}; !slices.Equal(got, want) {
		t.Errorf("ticks at %d ms, want %d", got, want)
	}
}

func TestMissedTicksDelayTheRestOfARateGate(t *testing.T) {
	got := ticksAfterThreeMissed(t, func(time.Time) weir.Limit {
		return weir.RateGate{Rate: weir.Per(1, 100*time.Millisecond)}
	})
	// Delay: one at once, and the next a whole period later.
	if want := []time.Duration{0, 100, 450, 550, 650, 750, 850, 950}; !slices.Equal(got, want) {
		t.Errorf("ticks at %d ms, want %d", got, want)
	}
}

func TestMissedTicksAreSkippedByACycle(t *testing.T) {
	got := ticksAfterThreeMissed(t, func(start time.Time) weir.Limit {
		return weir.Cycle{Rate: weir.Per(1, 100*time.Millisecond), Origin: time.Duration(start.UnixNano())}
	})
	// Skip: one at once, and then on the grid that began with the first.
	if want := []time.Duration{0, 100, 450, 500, 600, 700, 800, 900}; !slices.Equal(got, want) {
		t.Errorf("ticks at %d ms, want %d", got, want)
	}
}

func TestMissedTicksAreSkippedByAFixedWindow(t *testing.T) {
	got := ticksAfterThreeMissed(t, func(time.Time) weir.Limit {
		return weir.FixedWindow{Rate: weir.Per(1, 100*time.Millisecond)}
	})
	// As a cycle, on the grid of the clock: it was 37 ms past when this began.
	if want := []time.Duration{0, 63, 413, 463, 563, 663, 763, 863}; !slices.Equal(got, want) {
		t.Errorf("ticks at %d ms, want %d", got, want)
	}
}

// admission is one admitted cost and its time.
type admission struct{ at, units int64 }

// hammer asks a limiter for random costs at random instants that never decrease, and gives some units back. It
// returns the admissions.
func hammer(t *testing.T, limit weir.Limit, seed uint64) (admitted []admission) {
	t.Helper()
	limiter := mustLimit(t, limit)
	random := rand.New(rand.NewPCG(seed, 0))
	now := int64(1_700_000_000_123_456_789)
	capacity := limiter.PeekAt(time.Unix(0, now), 0).Limit
	var last weir.Decision
	for range 3000 {
		waits := []int64{0, 0, 1, int64(last.RetryAfter), int64(last.RetryAfter) - 1, int64(last.ResetAfter) / 3, random.Int64N(int64(time.Second))}
		now += max(waits[random.IntN(len(waits))], 0)
		cost := 1 + random.Int64N(capacity)
		if random.IntN(2) == 0 {
			cost = 1
		}
		last = limiter.TakeAt(time.Unix(0, now), cost)
		if last.Allowed {
			admitted = append(admitted, admission{now, cost})
		}
	}
	if len(admitted) < 100 {
		t.Fatalf("%s, seed %d: only %d of 3000 admitted: it proves nothing", limit, seed, len(admitted))
	}
	return admitted
}

// mostWithin returns the most units admitted in any [a, a + d).
func mostWithin(admitted []admission, d int64) (most int64) {
	var first int
	var inside int64
	for _, x := range admitted {
		inside += x.units
		for admitted[first].at <= x.at-d {
			inside -= admitted[first].units
			first++
		}
		most = max(most, inside)
	}
	return most
}

func TestTokenBucketNeverAdmitsMoreThanBurstAndRate(t *testing.T) {
	for seed, l := range []weir.TokenBucket{
		{Rate: weir.PerSecond(3), Burst: 5}, {Rate: weir.PerMinute(7), Burst: 2}, {Rate: weir.PerSecond(999), Burst: 40}, {Rate: weir.Per(10, 3*time.Second), Burst: 1},
	} {
		admitted := hammer(t, l, uint64(seed))
		for from := range admitted {
			var units int64
			for _, x := range admitted[from:] {
				units += x.units
				// units <= B + N T/P, without a division
				span := x.at - admitted[from].at
				if (units-l.Burst)*int64(l.Rate.Period) > l.Rate.Count*span {
					t.Fatalf("%s, seed %d: %d units admitted in %v", l, seed, units, time.Duration(span))
				}
			}
		}
	}
}

func TestSlidingLogNeverAdmitsMoreInAnyPeriod(t *testing.T) {
	for seed, l := range []weir.SlidingLog{
		{Rate: weir.PerSecond(5)}, {Rate: weir.Per(20, 3*time.Second)}, {Rate: weir.PerSecond(3), Gap: 100 * time.Millisecond},
	} {
		if got := mostWithin(hammer(t, l, uint64(seed)), int64(l.Rate.Period)); got > l.Rate.Count {
			t.Errorf("%s, seed %d: %d units admitted within one period", l, seed, got)
		}
	}
}

func TestFixedWindowNeverAdmitsMorePerWindow(t *testing.T) {
	for seed, l := range []weir.FixedWindow{{Rate: weir.PerSecond(5)}, {Rate: weir.Per(20, 3*time.Second)}} {
		admitted := hammer(t, l, uint64(seed))
		byWindow := map[int64]int64{}
		for _, x := range admitted {
			byWindow[x.at/int64(l.Rate.Period)] += x.units
		}
		for window, units := range byWindow {
			if units > l.Rate.Count {
				t.Errorf("%s, seed %d: %d units admitted in window %d", l, seed, units, window)
			}
		}
		if got := mostWithin(admitted, int64(l.Rate.Period)); got > 2*l.Rate.Count {
			t.Errorf("%s, seed %d: %d units admitted within one period, want at most twice the count", l, seed, got)
		}
	}
}

func TestLeakyBucketReleasesOneUnitPerInterval(t *testing.T) {
	l := weir.LeakyBucket{Rate: weir.PerSecond(3), Queue: 7}
	limiter := mustLimit(t, l)
	random := rand.New(rand.NewPCG(1, 0))
	var released []admission
	var now int64
	for range 5000 {
		now += random.Int64N(int64(500 * time.Millisecond))
		if d := limiter.TakeAt(time.Unix(0, now), 1); d.Allowed {
			released = append(released, admission{now + int64(d.Delay), 1})
		}
	}
	// A release is rounded up to a nanosecond, so an interval may look 1 ns short.
	interval := int64(time.Second) / 3
	for i := range released[1:] {
		if got := released[i+1].at - released[i].at; got < interval {
			t.Fatalf("%s: released %d ns after the one before, want at least %d", l, got, interval)
		}
	}
	if len(released) < 1000 {
		t.Errorf("%s: only %d released: it proves nothing", l, len(released))
	}
}

// TestRatesNeverDrift takes each unit of a bucket at the instant that the bucket names, over a long virtual time, and
// compares every instant. A second unit is kept in reserve, so that rounding an instant up to a nanosecond wastes
// nothing.
func TestRatesNeverDrift(t *testing.T) {
	for _, c := range []struct {
		rate   weir.Rate
		rounds int64 // whole periods
	}{
		{weir.PerSecond(3), 40_000},
		{weir.PerMinute(7), 20_000},
		{weir.PerSecond(999), 150},
		{weir.PerSecond(weir.MaxRate), 1},
		{weir.Per(1, 30*24*time.Hour), 1500},
		{weir.Per(7, 13), 20_000},
	} {
		limiter := mustLimit(t, weir.TokenBucket{Rate: c.rate, Burst: 2})
		start := int64(-1_000_000_007)
		units := min(c.rate.Count*c.rounds, 40_000)
		now := start
		limiter.TakeAt(time.Unix(0, now), 1)
		for i := range units {
			d := limiter.TakeAt(time.Unix(0, now), 1)
			// Unit i is due i P/N after the start, rounded up.
			due := start + ceilOf(i, int64(c.rate.Period), c.rate.Count)
			if !d.Allowed || now != due {
				t.Fatalf("%v: unit %d of %d: at %d, want it admitted at %d (%+v)", c.rate, i, units, now, due, d)
			}
			now += int64(limiter.PeekAt(time.Unix(0, now), 1).RetryAfter)
		}
	}
}

// ceilOf returns i * period / count rounded up, in two steps that do not overflow.
func ceilOf(i, period, count int64) int64 {
	return i/count*period + (i%count*period+count-1)/count
}

// TestRatesNeverDriftWhenAskedRarely takes all units after long gaps: the totals over centuries are exact, too.
func TestRatesNeverDriftWhenAskedRarely(t *testing.T) {
	for _, rate := range []weir.Rate{weir.PerSecond(3), weir.PerMinute(7), weir.PerSecond(999), weir.PerSecond(weir.MaxRate), weir.Per(1, 30*24*time.Hour)} {
		burst := int64(weir.MaxCount)
		limiter := mustLimit(t, weir.TokenBucket{Rate: rate, Burst: burst})
		start := time.Unix(0, -9_000_000_000_000_000_000)
		limiter.TakeAt(start, burst)
		var taken, passed int64
		for i := range int64(2000) {
			passed += 9_000_000_000_000_000/2 + i*i // 52 days, and never evenly
			room := limiter.PeekAt(start.Add(time.Duration(passed)), 0).Remaining
			if room > 0 && !limiter.TakeAt(start.Add(time.Duration(passed)), room).Allowed {
				t.Fatalf("%v: %d remaining is refused", rate, room)
			}
			taken += room
		}
		if want := floorOf(passed, rate.Count, int64(rate.Period)); taken != want {
			t.Errorf("%v: got %d units in %v, want exactly %d", rate, taken, time.Duration(passed), want)
		}
	}
}

// floorOf returns passed * count / period rounded down, in two steps that do not overflow.
func floorOf(passed, count, period int64) int64 {
	return passed/period*count + passed%period*count/period
}

// argument is a value of a type that a method takes.
func argument(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerDay(1)})
	for _, value := range []any{int64(1), 1, time.Second, time.Now(), weir.Turn{Cost: 1}, &bytes.Buffer{}, t.Context(),
		weir.TokenBucket{Rate: weir.PerDay(1)}, []weir.Request{rule.For("k", 1)}, rule.For("k", 1), make([]weir.Result, 1), []*weir.Rule{rule},
		weir.Call{Requests: []weir.Request{rule.For("k", 1)}}, enginekit.Calls(weir.OpTake, rule.For("k", 1)), func([]weir.Request) bool { return false }} {
		if v := reflect.ValueOf(value); v.Type().AssignableTo(of) {
			return v
		}
	}
	t.Fatalf("no argument for %v: add one", of)
	return reflect.Value{}
}

// Every method of a zero value refuses, and its error says how to make a value.
func TestZeroValuesRefuse(t *testing.T) {
	fine := map[string]bool{"Close": true, "Refresh": true, "Reset": true, "For": true} // that tell nothing
	for _, zero := range []any{&weir.Limiter{}, &weir.Keyed[int]{}, &weir.Memory{}} {
		v := reflect.ValueOf(zero)
		for i := range v.NumMethod() {
			method, name := v.Method(i), v.Type().Method(i).Name
			var args []reflect.Value
			for in := range method.Type().Ins() {
				args = append(args, argument(t, in))
			}
			call := method.Call
			if method.Type().IsVariadic() {
				call = method.CallSlice
			}
			results := call(args)
			for _, result := range results {
				if refused, isFine := refusal(result.Interface()), fine[name]; !refused && !isFine {
					t.Errorf("%T: %s returned %+v, want a refusal", zero, name, result)
				}
			}
		}
	}
	if err := new(weir.Keyed[int]).For(1).WaitTurn(t.Context(), weir.Turn{Cost: 1}); !refusal(err) {
		t.Errorf("a key of a zero Keyed: %v", err)
	}
	var key weir.KeyLimiter[int]
	if err := key.WaitTurn(t.Context(), weir.Turn{Cost: 1}); !refusal(err) {
		t.Errorf("a zero KeyLimiter: %v", err)
	}
	if d := key.Return(1); !refusal(d) {
		t.Errorf("a zero KeyLimiter: Return returned %+v, want a refusal", d)
	}
}

// refusal reports whether a method of a zero value returned an empty value, a final refusal, or an error that says
// how to make one.
func refusal(result any) bool {
	switch r := result.(type) {
	case error:
		return strings.Contains(r.Error(), "make it with weir.New")
	case weir.Decision:
		return r == weir.Decision{} || r == weir.Decision{RetryAfter: weir.Never, Cause: weir.ByCount}
	case *weir.Reservation:
		return r == nil || !r.Decision.Allowed
	case weir.MemoryStats:
		return r.Keys == 0
	}
	return result == nil || reflect.ValueOf(result).IsZero()
}

// The results of an Each are errors, too.
func TestAZeroMemoryRefusesEachRequest(t *testing.T) {
	rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerDay(1)})
	results := make([]weir.Result, 1)
	err := new(weir.Memory).Each(context.Background(), enginekit.Calls(weir.OpTake, rule.For("k", 1)), results)
	if err != nil || results[0].Err == nil || results[0].Decision.Allowed {
		t.Errorf("Each of a zero Memory: %+v and %v, want an error for the request", results[0], err)
	}
}

func TestLimiterPassesVectors(t *testing.T) {
	oneLimit := func(s vectors.Scenario) string {
		switch {
		case len(s.Limits()) > 1:
			return "a Limiter holds one limit"
		case s.Changes():
			return "a Limiter is given another limit by SetLimit, which converts at once"
		}
		return ""
	}
	vectors.Run(t, oneLimit, func(s vectors.Scenario) (vectors.Subject, error) {
		_, err := weir.New(s.Limits()[0])
		return limiters{t: t, limit: s.Limits()[0], byKey: map[string]twins{}}, err
	})
}

func TestKeyedPassesVectors(t *testing.T) {
	oneLimit := func(s vectors.Scenario) string {
		if len(s.Limits()) > 1 {
			return "a Keyed holds one limit for each key"
		}
		return ""
	}
	vectors.Run(t, oneLimit, func(s vectors.Scenario) (vectors.Subject, error) {
		k := &keyedSubjects{limit: s.Limits()[0]}
		var err error
		k.keyed, err = weir.NewKeyedFunc(func(string) weir.Limit { return k.limit }, weir.Options{Clock: func() int64 { return k.now }})
		return k, errors.Join(err, validate(k.limit))
	})
}

// validate returns every field of a limit that is out of bounds.
func validate(limit weir.Limit) error {
	_, err := weir.New(limit)
	return err
}

// keyedSubjects are the keys of a Keyed whose function returns the limit.
type keyedSubjects struct {
	keyed *weir.Keyed[string]
	limit weir.Limit
	now   int64
}

func (k *keyedSubjects) ChangeTo(params vectors.Params) error {
	k.limit = params.Weir()[0]
	return validate(k.limit)
}

func (k *keyedSubjects) Answer(now int64, op vectors.Op) vectors.Answer {
	k.now = now
	switch op.Verb {
	case vectors.Peek:
		return limiterAnswer(k.keyed.Peek(op.Key, op.Cost))
	case vectors.Allow:
		return limiterAnswer(k.keyed.Take(op.Key, op.Cost))
	}
	booking, err := k.keyed.Reserve(op.Key, op.Cost, longest(op))
	return bookingAnswer(booking, err)
}

// limiters holds a Limiter for each key, and a twin with the same past. The twin answers AllowAt and the other
// TakeAt.
type limiters struct {
	t     *testing.T
	limit weir.Limit
	byKey map[string]twins
}

type twins struct{ takes, allows *weir.Limiter }

func (l limiters) Answer(now int64, op vectors.Op) vectors.Answer {
	subject, t := l.subject(op.Key), time.Unix(0, now)
	switch op.Verb {
	case vectors.Peek:
		return limiterAnswer(subject.takes.PeekAt(t, op.Cost))
	case vectors.Allow:
		return subject.allow(t, op.Cost)
	}
	return subject.reserve(t, op)
}

// reserve returns the answer of ReserveAt.
func (w twins) reserve(t time.Time, op vectors.Op) vectors.Answer {
	booking, err := w.takes.ReserveAt(t, op.Cost, longest(op))
	if err == nil && booking.Decision.Allowed {
		w.allows.ReserveAt(t, op.Cost, longest(op))
	}
	return bookingAnswer(booking, err)
}

func longest(op vectors.Op) time.Duration {
	if op.MaxWait == -1 {
		return weir.Never
	}
	return time.Duration(op.MaxWait)
}

func bookingAnswer(booking *weir.Reservation, err error) vectors.Answer {
	var bad *weir.RequestError
	switch {
	case errors.As(err, &bad) && bad.Field == "cost":
		return vectors.Answer{Error: vectors.InvalidCost}
	case errors.As(err, &bad) && bad.Field == "limit":
		return vectors.Answer{Error: vectors.UnsupportedVerb}
	case err != nil:
		return vectors.Answer{Error: err.Error()}
	}
	return limiterAnswer(booking.Decision)
}

// allow returns the answer of TakeAt. AllowAt returns the same as a bool, except that it refuses a cost with a delay.
func (w twins) allow(t time.Time, cost int64) vectors.Answer {
	took := w.takes.TakeAt(t, cost)
	allowed := w.allows.AllowAt(t, cost)
	if want := took.Allowed && took.Delay == 0; allowed != want {
		return vectors.Answer{Error: fmt.Sprintf("AllowAt is %t where TakeAt is %+v", allowed, took)}
	}
	if took.Allowed && !allowed {
		w.allows.RecordAt(t, cost)
	}
	return limiterAnswer(took)
}

func (l limiters) subject(key string) twins {
	if _, ok := l.byKey[key]; !ok {
		l.byKey[key] = twins{mustLimit(l.t, l.limit), mustLimit(l.t, l.limit)}
	}
	return l.byKey[key]
}

// mustLimit returns a Limiter of a valid limit.
func mustLimit(t testing.TB, limit weir.Limit) *weir.Limiter {
	t.Helper()
	limiter, err := weir.New(limit)
	if err != nil {
		t.Fatalf("New(%s): %v", limit, err)
	}
	return limiter
}

func limiterAnswer(d weir.Decision) vectors.Answer {
	if d.Limit == 0 {
		return vectors.Answer{Error: vectors.InvalidCost}
	}
	return vectors.DecisionAnswer(d)
}

// Every verb of every type gives the same answer, before and after all other verbs.
func TestUnlimitedAdmitsEverythingAndDenyAllNothing(t *testing.T) {
	for _, tt := range []struct {
		limit   weir.Limit
		allowed bool
	}{{weir.Unlimited{}, true}, {weir.DenyAll{}, false}} {
		one, keyed := mustLimit(t, tt.limit), mustKeyed[string](t, tt.limit)
		engine, rule := weir.NewMemory(weir.MemoryOptions{}), mustRule(t, "r", tt.limit)
		want := weir.Decision{Allowed: tt.allowed, Limit: weir.MaxCount, Remaining: weir.MaxCount}
		if !tt.allowed {
			want = weir.Decision{RetryAfter: weir.Never, Cause: weir.ByCount}
		}
		for range 3 {
			for _, n := range []int64{1, weir.MaxCount} {
				ofEngine, err := engine.Take(t.Context(), rule.For("a", n))
				ofEngine.Rule, ofEngine.Key = "", ""
				for name, got := range map[string]weir.Decision{
					"Limiter.Take": one.Take(n), "Limiter.Peek": one.Peek(n), "Keyed.Take": keyed.Take("a", n), "Memory.Take": ofEngine,
				} {
					if got != want || err != nil {
						t.Errorf("%s: %s(%d) = %+v and error %v, want %+v", tt.limit, name, n, got, err, want)
					}
				}
				if one.AllowN(n) != tt.allowed || keyed.AllowN("a", n) != tt.allowed {
					t.Errorf("%s: AllowN(%d) is not %v", tt.limit, n, tt.allowed)
				}
			}
			one.Record(7)
		}
		err := one.Wait(t.Context())
		if tt.allowed != (err == nil) || !tt.allowed && !errors.Is(err, weir.ErrNever) {
			t.Errorf("%s: Wait: got %v", tt.limit, err)
		}
		if one.TakeAt(time.Time{}, 0).Allowed != true {
			t.Errorf("%s: a cost of 0 is refused", tt.limit)
		}
	}
}

// A plan can change between a limit, no limit and no access.
func TestPlansCanBeUnlimitedOrDenied(t *testing.T) {
	plans := map[string]weir.Limit{"free": weir.TokenBucket{Rate: weir.PerDay(1)}, "gold": weir.Unlimited{}, "blocked": weir.DenyAll{}}
	keyed, err := weir.NewKeyedFunc(func(plan string) weir.Limit { return plans[plan] }, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		keyed.Allow("free")
		if !keyed.Allow("gold") || keyed.Allow("blocked") || keyed.Allow("free") {
			t.Fatal("a plan got another one's answer")
		}
	}
	plans["blocked"], plans["gold"] = plans["gold"], plans["blocked"]
	if keyed.Allow("gold") || !keyed.Allow("blocked") {
		t.Error("a changed plan is not obeyed")
	}
}

// Beside other limits Unlimited changes no answer, and DenyAll takes nothing.
func TestUnlimitedAndDenyAllBesideOtherLimits(t *testing.T) {
	bucket := weir.TokenBucket{Rate: weir.PerDay(3)}
	engine := weir.NewMemory(weir.MemoryOptions{})
	free, err := weir.ParseRule("r=unlimited and token bucket 3/d")
	if err != nil {
		t.Fatal(err)
	}
	denied := mustRule(t, "r", bucket, weir.DenyAll{})
	ctx := context.Background()
	for range 5 {
		if d, err := engine.Take(ctx, denied.For("a", 1)); err != nil || d.Allowed || d.RetryAfter != weir.Never {
			t.Errorf("denied: got %+v and error %v", d, err)
		}
	}
	if d, err := engine.Take(ctx, free.For("a", 1)); err != nil || !d.Allowed || d.Limit != 3 || d.Remaining != 2 {
		t.Errorf("unlimited and 3/d: got %+v and error %v, want 2 of 3 left", d, err)
	}
}

// These tests check the claims of the limits' comments about edges, one each.

func TestBookedCycleMayUseOneLessThanTwiceItsPermits(t *testing.T) {
	start := time.Unix(1_700_000_000, 0) // a cycle of 10 s begins
	lim := mustNew(t, weir.Cycle{Rate: weir.Per(10, 10*time.Second)})
	lim.TakeAt(start, 1)
	b, err := lim.ReserveAt(start, 10, weir.Never)
	if err != nil || b.Decision.Delay != 10*time.Second {
		t.Fatalf("booking of 10 with 9 left: %+v, %v; want it in the next cycle", b.Decision, err)
	}
	next := start.Add(10 * time.Second)
	if !lim.AllowAt(next, 9) || lim.AllowAt(next, 1) {
		t.Error("beside the 10 booked, want 9 more in the next cycle and not 10")
	}
}

func TestGapCountsFromDeniedAttemptsThatAreLogged(t *testing.T) {
	for _, countDenied := range []bool{false, true} {
		start := time.Unix(1_700_000_000, 0)
		lim := mustNew(t, weir.SlidingLog{Rate: weir.Per(5, 10*time.Second), Gap: time.Second, CountDenied: countDenied})
		lim.AllowAt(start, 1)
		if lim.AllowAt(start.Add(500*time.Millisecond), 1) {
			t.Error("an attempt within the gap was admitted")
		}
		if got := lim.AllowAt(start.Add(1200*time.Millisecond), 1); got == countDenied {
			t.Errorf("count denied %v: an attempt 1.2s after the admitted and 0.7s after the denied one: admitted %v", countDenied, got)
		}
	}
}

func TestARecordOverALimitCountsInFull(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for _, test := range []struct {
		limit weir.Limit
		want  int64 // left after 15 were recorded and 5 came back
	}{
		{weir.SlidingLog{Rate: weir.Per(10, 10*time.Second)}, 0},
		{weir.RateGate{Rate: weir.Per(10, 10*time.Second)}, 0},
		{weir.FixedWindow{Rate: weir.Per(10, 10*time.Second)}, 0},
		{weir.TokenBucket{Rate: weir.Per(10, 10*time.Second)}, 0},
	} {
		lim := mustNew(t, test.limit)
		lim.RecordAt(start, 15)
		if d := lim.ReturnAt(start, 5); d.Remaining != test.want {
			t.Errorf("%v: %d left, want %d", test.limit, d.Remaining, test.want)
		}
	}
}

func TestJitterHoldsBackWaitingCallersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{Jitter: time.Hour})
		start := time.Now()
		if err := lim.Wait(t.Context()); err != nil || time.Since(start) != 0 {
			t.Errorf("a turn that need not be waited for: %v after %v, want it at once", err, time.Since(start))
		}
		if err := lim.Wait(t.Context()); err != nil || time.Since(start) <= time.Second || time.Since(start) >= time.Hour+time.Second {
			t.Errorf("a turn after a second: %v after %v, want a random time below an hour more", err, time.Since(start))
		}
	})
}

func TestRuleReadsBackWithoutWhiteSpaceAroundItsName(t *testing.T) {
	for name, want := range map[string]string{"log in": "log in", " login ": "login"} {
		rule := mustRule(t, name, weir.FixedWindow{Rate: weir.PerDay(1)})
		if again, err := weir.ParseRule(rule.String()); err != nil || again.Name() != want {
			t.Errorf("%q reads back as %v, %v; want the name %q", rule, again, err, want)
		}
	}
}
