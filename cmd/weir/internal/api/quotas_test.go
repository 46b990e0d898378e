package api

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/override"
)

// newQuotas returns an API, at midnight of UTC on 1 January 2000 in a bubble, whose limits of two keys are overridden: that of
// "swiss" by a quota, and that of "free" by none.
func newQuotas(t *testing.T, rules ...string) *API {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	table, err := override.OpenFile("", log)
	if err != nil {
		t.Fatal(err)
	}
	engine := table.Around(weir.NewMemory(weir.MemoryOptions{}))
	for key, limit := range map[string]string{"swiss": "100/s and quota 2/month in Europe/Zurich", "free": "1000/s"} {
		if _, err := table.Set(t.Context(), &override.Entry{Key: key, Limit: limit, Until: time.Now().Add(time.Hour)}, engine); err != nil {
			t.Fatal(err)
		}
	}
	return newAPIWith(t, decide.Options{Engine: engine, Log: log}, rules...)
}

// resetAt returns the field of an answer, or "".
func resetAt(answer string) string {
	_, after, _ := strings.Cut(answer, `"reset_at":"`)
	at, _, _ := strings.Cut(after, `"`)
	return at
}

// What decides is the quota of the rule, of the call or of an override of the key.
func TestAnswersTellWhenTheQuotaThatDecidesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newQuotas(t, "default=100/m", "both=quota 1/day in Asia/Kathmandu and quota 9/year from march 1 in America/New_York", "one=quota 1/week from sunday")
		a.Dynamic = true
		for _, c := range []struct{ path, body, want string }{
			{"take", `{"key":"a"}`, ""},
			{"take", `{"rule":"one","key":"a"}`, "2000-01-02T00:00:00Z"},
			{"take", `{"rule":"one","key":"a"}`, "2000-01-02T00:00:00Z"},
			{"take", `{"rule":"both","key":"a"}`, "2000-03-01T00:00:00-05:00"}, // the last to end
			{"take", `{"rule":"both","key":"a"}`, "2000-01-02T00:00:00+05:45"}, // that which refuses
			{"take", `{"rule":"both","key":"a","cost":10}`, "2000-03-01T00:00:00-05:00"},
			{"peek", `{"requests":[{"rule":"both","key":"b","cost":0},{"key":"b","cost":0}]}`, "2000-03-01T00:00:00-05:00"},
			{"take", `{"rule":"t","key":"a","limit":"quota 1/quarter in Asia/Kolkata"}`, "2000-04-01T00:00:00+05:30"},
			{"take", `{"rule":"t","key":"a","limit":"quota 1/quarter in Asia/Kolkata"}`, "2000-04-01T00:00:00+05:30"},
			{"take", `{"key":"swiss","cost":2}`, "2000-02-01T00:00:00+01:00"},
			{"take", `{"key":"swiss"}`, "2000-02-01T00:00:00+01:00"},
			{"wait", `{"key":"swiss"}`, "2000-02-01T00:00:00+01:00"},
			{"reserve", `{"key":"swiss"}`, "2000-02-01T00:00:00+01:00"},
			{"take", `{"rule":"one","key":"free"}`, ""},
			{"take", `{"decisions":[{"key":"free"},{"key":"swiss"}]}`, "2000-02-01T00:00:00+01:00"},
		} {
			if got := post(a, "/v1/"+c.path, c.body); got.Code != http.StatusOK || resetAt(got.Body.String()) != c.want {
				t.Errorf("%s %s: reset_at is %q, want %q, in %d %s", c.path, c.body, resetAt(got.Body.String()), c.want, got.Code, got.Body)
			}
		}
	})
}

// A check has the same instant in a header field, which gateways can copy, and in the body of a refusal. Its other header fields
// are of the limits that decide, too, and no quota has a length.
func TestAChecksAnswerTellsWhenTheQuotaEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newQuotas(t, "default=100/m", "one=quota 1/week from sunday")
		for _, c := range []struct {
			query  string
			status int
			at     string
			policy string
		}{
			{"key=a", 204, "", `"default";q=100;w=60`},
			{"rule=one&key=a", 204, "2000-01-02T00:00:00Z", `"one";q=1`},
			{"rule=one&key=a", 429, "2000-01-02T00:00:00Z", `"one";q=1`},
			{"key=swiss&cost=2", 204, "2000-02-01T00:00:00+01:00", `"default-1";q=100;w=1, "default-2";q=2`},
			{"key=swiss&cost=3", 429, "2000-02-01T00:00:00+01:00", `"default-1";q=100;w=1, "default-2";q=2`}, // never
			{"key=swiss", 429, "2000-02-01T00:00:00+01:00", `"default-1";q=100;w=1, "default-2";q=2`},
			{"rule=one&key=free", 204, "", `"one";q=1000;w=1`},
		} {
			w := ask(a, "GET", "/v1/check?"+c.query, gateway)
			if w.Code != c.status || w.Header().Get("Weir-Reset-At") != c.at || w.Header().Get("RateLimit-Policy") != c.policy {
				t.Errorf("%s: %d, Weir-Reset-At %q, RateLimit-Policy %s, want %+v", c.query, w.Code, w.Header().Get("Weir-Reset-At"), w.Header().Get("RateLimit-Policy"), c)
			}
			if c.status == 429 && resetAt(w.Body.String()) != c.at {
				t.Errorf("%s: the body is %s, want reset_at %s", c.query, w.Body, c.at)
			}
		}
	})
}

// The clock of an engine decides, which may be some seconds before or after that of the daemon.
func TestARefusalTellsTheEndByTheClockOfTheEngine(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Minute, -2 * time.Second, -1, 0, 1, 2 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(12 * time.Hour)
			engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return time.Now().Add(ahead).UnixNano() }})
			a := newAPIWith(t, decide.Options{Engine: engine}, "default=quota 1/day in Asia/Tokyo")
			for range 2 {
				if got := resetAt(post(a, "/v1/take", `{"key":"a"}`).Body.String()); got != "2000-01-02T00:00:00+09:00" {
					t.Errorf("ahead by %v: reset_at is %s", ahead, got)
				}
			}
		})
	}
}

// Of the zones in the calls for one key, each counts what another has counted; another unit is another rule.
func TestLimitsInCallsChangeTheZoneOfAQuotaAndNotItsUnit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newQuotas(t)
		a.Dynamic = true
		for i, c := range []struct{ limit, want string }{
			{"quota 2/day in Asia/Tokyo", `{"allowed":true,`},
			{"quota 2/day at 06:00 in America/New_York", `"remaining":0,`},
			{"quota 2/day", `{"allowed":false,`},
			{"quota 2/day in Asia/Tokio", `is not a zone that this program knows: did you mean Asia/Tokyo?"`},
			{"quota 2/month", `but rule \"t\" has Quota per day; a rule has one algorithm and period"`},
		} {
			if got := post(a, "/v1/take", `{"rule":"t","key":"a","limit":"`+c.limit+`"}`).Body.String(); !strings.Contains(got, c.want) {
				t.Errorf("%d: %s: got %s, want %s", i, c.limit, got, c.want)
			}
		}
	})
}
