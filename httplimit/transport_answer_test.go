package httplimit_test

import (
	"context"
	"io"
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
		"in the body of a 200":        {throttled, [][]string{says("200")}, []time.Duration{0, 7 * time.Second}},
		"a longer Retry-After":        {throttled, [][]string{says("200", "Retry-After: 60")}, []time.Duration{0, time.Minute}},
		"a shorter Retry-After":       {throttled, [][]string{says("429", "Retry-After: 5")}, []time.Duration{0, 7 * time.Second}},
		"a longer reset":              {throttled, [][]string{says("429", `RateLimit: "a";r=0;t=60`)}, []time.Duration{0, time.Minute}},
		"a shorter reset":             {throttled, [][]string{says("429", `RateLimit: "a";r=0;t=5`)}, []time.Duration{0, 7 * time.Second}},
		"the terms of a vendor":       {throttled, [][]string{says("429", "X-GitHub-Request-Id: 1")}, []time.Duration{0, time.Minute}},
		"no pause: Retry-After":       {unnamed, [][]string{says("420", "X-Full: 1", "Retry-After: 9")}, []time.Duration{0, 9 * time.Second}},
		"no pause at all":             {unnamed, [][]string{says("420", "X-Full: 1"), says("500", "X-Full: 1")}, []time.Duration{0, time.Second, 3 * time.Second}},
		"a 429 that it does not know": {unnamed, [][]string{says("429", "Retry-After: 3")}, []time.Duration{0, 3 * time.Second}},
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

func TestARefusalWithoutARemainderKeepsItsReset(t *testing.T) {
	for _, fields := range [][]string{
		{"X-RateLimit-Limit: 5", "X-RateLimit-Remaining: -1", "X-RateLimit-Reset: 13"},
		{"X-RateLimit-Remaining: many", "X-RateLimit-Reset: 13"},
		{"X-RateLimit-Limit: many", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 13"},
		{"RateLimit-Limit: 5", "RateLimit-Remaining: -1", "RateLimit-Reset: 13"},
		{"RateLimit: limit=5, remaining=-1, reset=13"},
		{`RateLimit-Policy: "x";q=5;w=60`, `RateLimit: "x";r=-1;t=13`},
		{"x-ratelimit-remaining-requests: -1", "x-ratelimit-reset-requests: 13s"},
		{"Retry-After: 5, 13"}, {"Retry-After: 13", "Retry-After: 5"},
	} {
		t.Run(strings.Join(fields, "; "), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scripted(append(says("429"), fields...))
				transport := newTransport(t, httplimit.TransportOptions{Base: s})
				if status, err := ask(transport, "http://api.example"); status != 200 || err != nil {
					t.Errorf("%d, %v, want 200", status, err)
				}
				wantAbout(t, "a refusal and a retry", s.came, time.Second, 0, 13*time.Second)
			})
		})
	}
}

// GitHub asks for a minute after a refusal under its secondary limits that names no time.
func TestASecondaryLimitOfGitHubWaitsAMinute(t *testing.T) {
	const secondary = `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`
	quota := []string{"X-GitHub-Request-Id: C0FF:EE", "X-RateLimit-Limit: 5000", "X-RateLimit-Remaining: 4987", "X-RateLimit-Reset: 3600"}
	for name, tt := range map[string]struct {
		status, text string
		want         []time.Duration
	}{
		"403":                 {"403", secondary, []time.Duration{0, time.Minute}},
		"429":                 {"429", secondary, []time.Duration{0, time.Minute}},
		"its older name":      {"403", `{"message":"You have triggered an abuse detection mechanism."}`, []time.Duration{0, time.Minute}},
		"a 403 about rights":  {"403", `{"message":"Resource not accessible by integration"}`, []time.Duration{0}},
		"a 403 without words": {"403", "", []time.Duration{0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scripted(append(says(tt.status), quota...))
				s.text = tt.text
				resp, err := newTransport(t, httplimit.TransportOptions{Base: s}).RoundTrip(toHost(t, t.Context(), "api.github.com"))
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(resp.Body)
				if resp.Body.Close(); err != nil || resp.StatusCode == 403 && string(text) != tt.text {
					t.Errorf("the caller reads %q, %v, want %q", text, err, tt.text)
				}
				wantAbout(t, name, s.came, 15*time.Second, tt.want...)
			})
		})
	}
}
