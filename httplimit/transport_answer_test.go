package httplimit_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
)

func TestRetryAfterGoesBeforeTheResetOfAnAdmittedRequest(t *testing.T) {
	for name, tt := range map[string]struct {
		answer []string
		second time.Duration
	}{
		"sooner than the reset":          {says("200", `RateLimit: "a";r=0;t=60`, "Retry-After: 5"), 5 * time.Second},
		"later than the reset":           {says("200", `RateLimit: "a";r=0;t=5`, "Retry-After: 60"), time.Minute},
		"later than the client's own":    {says("200", `RateLimit-Policy: "a";q=1;w=5`, `RateLimit: "a";r=0;t=5`, "Retry-After: 60"), time.Minute},
		"the last of the legacy fields":  {says("204", "X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60", "Retry-After: 5"), 5 * time.Second},
		"units are left":                 {says("202", `RateLimit: "a";r=9;t=60`, "Retry-After: 5"), 0},
		"no quota: about this one alone": {says("202", "Retry-After: 60"), 0},
		"a quota and no Retry-After":     {says("200", `RateLimit: "a";r=0;t=60`), time.Minute},
		"a Retry-After of 0":             {says("200", `RateLimit: "a";r=0;t=60`, "Retry-After: 0"), time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scripted(tt.answer)
				transport := newTransport(t, httplimit.TransportOptions{Base: s})
				for range 2 {
					if status, err := ask(transport, "http://api.example"); status > 204 || err != nil {
						t.Errorf("%d, %v, want an admitted request", status, err)
					}
				}
				wantAbout(t, name, s.came, time.Second, 0, tt.second)
			})
		})
	}
}

func TestAFunctionMaySayWhatARefusalIs(t *testing.T) {
	unnamed := func(resp *http.Response) (time.Duration, bool) { return 0, resp.Header.Get("X-Full") != "" }
	for name, tt := range map[string]struct {
		refused func(*http.Response) (time.Duration, bool)
		answers [][]string
		want    []time.Duration
	}{
		"in the body of a 200":         {throttled, [][]string{says("200")}, []time.Duration{0, 7 * time.Second}},
		"its pause before Retry-After": {throttled, [][]string{says("200", "Retry-After: 60")}, []time.Duration{0, 7 * time.Second}},
		"no pause: Retry-After":        {unnamed, [][]string{says("420", "X-Full: 1", "Retry-After: 9")}, []time.Duration{0, 9 * time.Second}},
		"no pause at all":              {unnamed, [][]string{says("420", "X-Full: 1"), says("500", "X-Full: 1")}, []time.Duration{0, time.Second, 3 * time.Second}},
		"a 429 that it does not know":  {unnamed, [][]string{says("429", "Retry-After: 3")}, []time.Duration{0, 3 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scripted(tt.answers...)
				s.text = `{"errors":[{"extensions":{"code":"THROTTLED"}}]}`
				if status := post(t, s, httplimit.TransportOptions{Refused: tt.refused}, "POST", strings.NewReader("x")); status != 200 {
					t.Errorf("got %d, want 200 at last", status)
				}
				wantAbout(t, name, s.came, time.Second, tt.want...)
			})
		})
	}
}

func TestErrorsOfWaitsAreOneSentence(t *testing.T) {
	for want, err := range map[string]*httplimit.TransportError{
		"the wait for the server's quota would take 16m40s, above MaxPause, 10m":                                  {Reason: httplimit.ReasonQuota, Err: &weir.WaitError{Need: 999924588 * time.Microsecond, Bound: 10 * time.Minute}},
		"the pause that the server asks for would take 1h1m, above the 4.99s that the request's context has left": {Reason: httplimit.ReasonPause, Err: &weir.WaitError{Need: time.Hour + 12345678, Bound: 4987654321, Deadline: true}},
		"the wait for the rules would not end within the 1s that the request's context has left":                  {Reason: httplimit.ReasonRules, Err: &weir.WaitError{Need: weir.Never, Bound: time.Second, Deadline: true}},
		"MaxWaiting requests are waiting already":                                                                 {Reason: httplimit.ReasonOrder, Err: weir.ErrQueueFull},
		"the wait behind earlier requests: context canceled":                                                      {Reason: httplimit.ReasonOrder, Err: context.Canceled},
		"context canceled": {Err: context.Canceled},
	} {
		if err.Key = "api.example"; err.Error() != "httplimit: transport: api.example: "+want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
	}
}
