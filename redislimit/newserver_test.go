package redislimit_test

import (
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

func TestANewServerIsDeniedForOneReset(t *testing.T) {
	server := redistest.Start(t)
	now := int64(1_700_000_000) * 1e6 // us: not the start of a window
	engine := newEngine(t, dialOnce(t, server), redislimit.Options{DenyNewServer: true, Clock: func() int64 { return now * 1000 }})
	const hour int64 = 3600 * 1e6
	limits := map[weir.Limit]int64{ // to how long they are denied, in us
		weir.TokenBucket{Rate: weir.Per(3, time.Hour), Burst: 4}:  hour / 3 * 4,
		weir.TokenBucket{Rate: weir.Per(7, time.Hour), Burst: 1}:  (hour + 6) / 7,
		weir.LeakyBucket{Rate: weir.Per(3, time.Hour), Queue: 3}:  hour / 3 * 4,
		weir.FixedWindow{Rate: weir.PerHour(5)}:                   hour,
		weir.SlidingWindow{Rate: weir.PerHour(5)}:                 2 * hour,
		weir.SlidingLog{Rate: weir.PerHour(5)}:                    hour,
		weir.SlidingLog{Rate: weir.PerHour(5), CountDenied: true}: hour,
		weir.RateGate{Rate: weir.PerHour(5)}:                      hour,
		weir.Cycle{Rate: weir.PerHour(5)}:                         hour,
		weir.Concurrency{Slots: 5, Lease: time.Hour}:              hour,
	}
	ask := func(what string, rule *weir.Rule, allowed bool, retry int64) {
		t.Helper()
		d, err := engine.Take(t.Context(), rule.For("k", 1))
		if err != nil || d.Allowed != allowed || !allowed && (d.Remaining != 0 || int64(d.RetryAfter/time.Microsecond) != retry || d.ResetAfter < d.RetryAfter) {
			t.Errorf("%s: %s: got %+v and %v, want allowed %t, or else a retry after %d us", rule, what, d, err, allowed, retry)
		}
	}
	for round := range 2 {
		first := now
		if _, err := engine.Peek(t.Context(), newRule(t, "first", weir.FixedWindow{Rate: weir.PerHour(1)}).For("k", 0)); err != nil {
			t.Fatalf("Peek: %v", err)
		}
		for limit, denied := range limits {
			rule := newRule(t, limit.String(), limit)
			now = first + 1000
			ask("at first", rule, false, denied-1000)
			if d, err := engine.Take(t.Context(), rule.For("k", 0)); err != nil || !d.Allowed {
				t.Errorf("%s: cost 0: got %+v and %v, want it allowed", rule, d, err)
			}
			now = first + denied - 1
			ask("a microsecond before", rule, false, 1)
			now = first + denied
			ask("when a reset has passed", rule, true, 0)
		}
		both := newRule(t, "both", weir.FixedWindow{Rate: weir.PerHour(5)}, weir.SlidingLog{Rate: weir.PerDay(5)})
		now = first + 2*hour
		ask("where one of two is denied", both, false, 22*hour)
		now = first + 24*hour
		ask("where neither is any more", both, true, 0)
		if round == 0 {
			server.Kill()
			server.Restart()
			eventually(t, "the server is back", func() string {
				if _, err := engine.Peek(t.Context(), both.For("k", 0)); err != nil {
					return err.Error()
				}
				return ""
			})
		}
	}
}
