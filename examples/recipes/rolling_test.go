package recipes

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
)

// attempts is what rolling-rate-limiter does with a list of times, in the order of its description.
type attempts struct {
	window, gap time.Duration
	limit       int
	times       []time.Time
}

func (a *attempts) attempt(at time.Time, record bool) (v Verdict) {
	for len(a.times) > 0 && !a.times[0].After(at.Add(-a.window)) {
		a.times = a.times[1:]
	}
	all := append(a.times[:len(a.times):len(a.times)], at)
	v.ByCount = len(all) > a.limit
	v.ByGap = len(all) > 1 && at.Sub(all[len(all)-2]) < a.gap
	v.Allowed = !v.ByCount && !v.ByGap
	v.Remaining, v.NextAfter = int64(max(a.limit-len(all), 0)), a.gap
	if len(all) >= a.limit {
		v.NextAfter = max(v.NextAfter, all[len(all)-a.limit].Add(a.window).Sub(at))
	}
	if record {
		a.times = all
	}
	return v
}

func TestRollingDecidesAsItsOrigin(t *testing.T) {
	client := connect(t, redistest.Start(t).Addr)
	random := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	allowed, byGap, byCount := 0, 0, 0
	for subject := range 40 {
		window := time.Duration(1+random.IntN(10)) * time.Second
		model := attempts{window: window, limit: 1 + random.IntN(6)}
		if subject%2 == 0 {
			model.gap = time.Duration(random.Int64N(int64(window/time.Microsecond))) * time.Microsecond
		}
		clock := newClock()
		r := Rolling{Client: client, Window: window, Limit: int64(model.limit), Gap: model.gap, Now: clock.now}
		key := Key{"shop", "rolling", string(rune('A' + subject))}
		for range 60 {
			clock.advance(time.Duration(random.Int64N(int64(window))).Truncate(time.Microsecond) / 2 / time.Microsecond * time.Microsecond)
			record := random.IntN(4) > 0
			attempt := r.Fetch
			if record {
				attempt = r.Record
			}
			got, err := attempt(t.Context(), key)
			if want := model.attempt(clock.now(), record); err != nil || got != want {
				t.Fatalf("window %v, limit %d, gap %v, record %v: got %+v, %v, want %+v", window, model.limit, model.gap, record, got, err, want)
			}
			allowed, byGap, byCount = allowed+count(got.Allowed), byGap+count(got.ByGap), byCount+count(got.ByCount)
		}
	}
	if min(allowed, byGap, byCount) < 50 {
		t.Errorf("%d allowed, %d refused by the gap, %d by the count: want many of each", allowed, byGap, byCount)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A caller that asks again at NextAfter is allowed; a microsecond before, it is not.
func TestTheNextAttemptIsAllowedWhenRollingSays(t *testing.T) {
	client := connect(t, redistest.Start(t).Addr)
	clock := newClock()
	r := Rolling{Client: client, Window: 10 * time.Second, Limit: 3, Gap: time.Second, Now: clock.now}
	for range 8 {
		v, err := r.Record(t.Context(), alice)
		if err != nil || !v.Allowed {
			t.Fatalf("Record = %+v, %v, want it allowed", v, err)
		}
		clock.advance(v.NextAfter - time.Microsecond)
		if v, err := r.Fetch(t.Context(), alice); err != nil || v.Allowed {
			t.Errorf("Fetch a microsecond early = %+v, %v, want a refusal", v, err)
		}
		clock.advance(time.Microsecond)
	}
}

func TestRollingRefusesWhatIsOutOfBounds(t *testing.T) {
	client := connect(t, redistest.Start(t).Addr)
	for want, r := range map[string]Rolling{
		"recipes: rolling: limit 0 is not 1 to 1000000000":                             {Window: time.Second},
		"recipes: rolling: gap 2s is not 0 to the window of 1s in whole microseconds":  {Window: time.Second, Limit: 1, Gap: 2 * time.Second},
		"recipes: rolling: window 10µs is not 1ms to 366 days in whole microseconds":   {Window: 10 * time.Microsecond, Limit: 1},
		"recipes: rolling: gap 1ns is not 0 to the window of 1s in whole microseconds": {Window: time.Second, Limit: 1, Gap: 1},
	} {
		r.Client = client
		for _, attempt := range []func(context.Context, Key) (Verdict, error){r.Record, r.Fetch} {
			if _, err := attempt(t.Context(), alice); err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		}
	}
}
