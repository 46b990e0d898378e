package httplimit_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/httplimit/httplimittest"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/layer"
)

var (
	silent = slog.New(slog.DiscardHandler)
	ok     = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	start  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

const alice, bob = "192.0.2.1:1234", "192.0.2.2:1234"

// wrap returns a handler behind a middleware with options.
func wrap(t testing.TB, options httplimit.Options, next http.Handler) http.Handler {
	t.Helper()
	if options.Logger == nil {
		options.Logger = silent
	}
	options.Engine = layertest.Around(options.Engine)
	limited, err := httplimit.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return limited(next)
}

// limit returns a middleware with one rule on an engine with a clock.
func limit(t testing.TB, rule httplimit.Rule, next http.Handler) (http.Handler, *httplimittest.Clock) {
	t.Helper()
	clock := httplimittest.NewClock(start)
	return wrap(t, httplimit.Options{Engine: clock.Engine(), Rules: []httplimit.Rule{rule}}, next), clock
}

func mustRule(t testing.TB, text string) *weir.Rule {
	t.Helper()
	rule, err := weir.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

// get returns the answer to a request from an address. headers are names and values in turn.
func get(h http.Handler, from string, headers ...string) *httptest.ResponseRecorder {
	return answer(h, request("GET", from, headers...))
}

func request(method, from string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, "/", nil)
	r.RemoteAddr = from
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func answer(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func wantStatus(t *testing.T, what string, w *httptest.ResponseRecorder, want int) {
	t.Helper()
	if w.Code != want {
		t.Errorf("%s: status %d, want %d; body %s", what, w.Code, want, w.Body)
	}
}

func wantHeader(t *testing.T, what string, h http.Header, name, want string) {
	t.Helper()
	if got := strings.Join(h.Values(name), " + "); got != want {
		t.Errorf("%s: %s is %q, want %q", what, name, got, want)
	}
}

func TestPerClientLimitsEachAddress(t *testing.T) {
	limited, err := httplimit.PerClient("3/m and 1000/d")
	if err != nil {
		t.Fatal(err)
	}
	h := limited(ok)
	if wait := httplimittest.Admits(t, h, request("GET", alice), 3); wait < 19*time.Second || wait > 20*time.Second {
		t.Errorf("Retry-After is %v, want 20 s", wait)
	}
	wantStatus(t, "another client", get(h, bob), 200)
}

func TestPerKeyLimitsEachKeyAndSharesOneBudgetWithoutOne(t *testing.T) {
	limited, err := httplimit.PerKey("2/m", httplimit.Header("x-api-key"))
	if err != nil {
		t.Fatal(err)
	}
	h := limited(ok)
	for _, key := range []string{"a", "b"} {
		httplimittest.Admits(t, h, request("GET", alice, "X-Api-Key", key), 2)
	}
	httplimittest.Admits(t, h, request("GET", alice), 2)
	wantStatus(t, "another client without a key", get(h, bob), 429)
}

func TestRefusalSaysWhenToRetryAndWhichLimit(t *testing.T) {
	h, clock := limit(t, httplimit.Rule{Limit: "login=1/m and fixed window 100/d"}, ok)
	get(h, alice)
	clock.Advance(29*time.Second + 600*time.Millisecond) // 30.4 s to go
	w := get(h, alice)
	wantStatus(t, "second request", w, 429)
	wantHeader(t, "refusal", w.Header(), "Retry-After", "31")
	wantHeader(t, "refusal", w.Header(), "RateLimit", `"login-1";r=0;t=31`)
	wantHeader(t, "refusal", w.Header(), "Content-Type", "application/problem+json")
	wantHeader(t, "refusal", w.Header(), "Cache-Control", "no-store")
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("body %s: %v", w.Body, err)
	}
	violated, _ := got["violated-policies"].([]any)
	if got["status"] != 429.0 || len(violated) != 1 || violated[0] != "login-1" ||
		got["type"] != "https://iana.org/assignments/http-problem-types#quota-exceeded" {
		t.Errorf("problem is %s, want type quota-exceeded, status 429, violated-policies [login-1]", w.Body)
	}
	clock.Advance(31 * time.Second)
	wantStatus(t, "retry after Retry-After", get(h, alice), 200)
}

// Both limits have the same capacity, and units of both come back as soon as the refusal says.
func TestARefusalNamesTheLimitThatRefuses(t *testing.T) {
	h, clock := limit(t, httplimit.Rule{Limit: "login=3/s and fixed window 3/m"}, ok)
	clock.Advance(59*time.Second + 200*time.Millisecond)
	httplimittest.Admits(t, h, request("GET", alice), 3)
	clock.Advance(400 * time.Millisecond)
	wantHeader(t, "refusal by the window", get(h, alice).Header(), "RateLimit", `"login-2";r=0;t=1`)
}

// Two middlewares on one engine would share the budget of the rule "client".
func TestRulesWithoutANameShareNoEngine(t *testing.T) {
	engine, unnamed := weir.NewMemory(weir.MemoryOptions{}), []httplimit.Rule{{Limit: "60/m"}}
	_, err := httplimit.New(httplimit.Options{Engine: engine, Rules: unnamed})
	_, clientErr := httplimit.NewTransport(httplimit.TransportOptions{Engine: engine, Rules: unnamed})
	for _, err := range []error{err, clientErr} {
		if err == nil || !strings.Contains(err.Error(), `rules[0].limit "60/m" has no name`) {
			t.Errorf("a rule without a name on an engine of the program: %v, want an error that says to name it", err)
		}
	}
	reads := wrap(t, httplimit.Options{Engine: engine, Rules: []httplimit.Rule{{Limit: "reads=60/m"}}}, ok)
	writes := wrap(t, httplimit.Options{Engine: engine, Rules: []httplimit.Rule{{Limit: "writes=10/m"}}}, ok)
	for range 20 {
		wantStatus(t, "a read", get(reads, alice), 200)
	}
	wantStatus(t, "the first write", get(writes, alice), 200)
}

// A client that obeys Retry-After is admitted: the seconds are rounded up.
func TestRetryAfterIsNeverTooEarlyAndNeverZero(t *testing.T) {
	for _, text := range []string{"10/s", "3/s", "7/m", "fixed window 2/1m", "sliding window 5/10s", "rate gate 3/2s", "leaky bucket 2/s"} {
		h, clock := limit(t, httplimit.Rule{Limit: "client=" + text}, ok)
		for range 50 {
			w := get(h, alice)
			if w.Code == 200 {
				continue
			}
			wait, err := time.ParseDuration(w.Header().Get("Retry-After") + "s")
			if err != nil || wait < time.Second {
				t.Fatalf("%s: Retry-After is %q, want seconds above 0", text, w.Header().Get("Retry-After"))
			}
			clock.Advance(wait)
			wantStatus(t, text+": retry after Retry-After", get(h, alice), 200)
		}
	}
}

func TestRulesAreTakenAllOrNothing(t *testing.T) {
	clock := httplimittest.NewClock(start)
	engine := clock.Engine()
	all := mustRule(t, "all=10/m")
	h := wrap(t, httplimit.Options{Engine: engine, Rules: []httplimit.Rule{
		{Limit: "client=2/m"}, {Rule: all, Key: httplimit.Everyone},
	}}, ok)
	for range 5 {
		get(h, alice)
	}
	d, err := engine.Peek(t.Context(), all.For("all", 1))
	if err != nil || d.Remaining != 8 {
		t.Errorf("after 2 admitted and 3 refused requests %d of 10 remain for all (%v), want 8", d.Remaining, err)
	}
	w := get(h, alice)
	wantHeader(t, "refusal", w.Header(), "RateLimit-Policy", `"client";q=2;w=60, "all";q=10;w=60`)
	wantHeader(t, "refusal", w.Header(), "RateLimit", `"client";r=0;t=30`)
}

func TestTheSlowerOfTwoLimitsIsNamedWhenItRefuses(t *testing.T) {
	h, clock := limit(t, httplimit.Rule{Limit: "a=2/s and fixed window 4/d"}, ok)
	for range 4 {
		get(h, alice)
		clock.Advance(time.Second)
	}
	w := get(h, alice)
	wantHeader(t, "refusal by the day", w.Header(), "RateLimit", `"a-2";r=0;t=43196`)
	wantHeader(t, "refusal by the day", w.Header(), "Retry-After", "43196")
	h, _ = limit(t, httplimit.Rule{Limit: "a=4/s and fixed window 4/d"}, ok)
	for range 4 {
		get(h, alice)
	}
	w = get(h, alice) // both refuse, and the day for longer
	wantHeader(t, "refusal by both", w.Header(), "RateLimit", `"a-2";r=0;t=43200`)
}

func TestPlansDifferByRequest(t *testing.T) {
	plans := map[string]*weir.Rule{"free": mustRule(t, "plan=1/m"), "paid": mustRule(t, "plan=5/m"), "staff": mustRule(t, "plan=unlimited")}
	h, _ := limit(t, httplimit.Rule{
		Plan: func(r *http.Request) *weir.Rule { return plans[r.Header.Get("Plan")] },
		Key:  httplimit.Header("Tenant"),
	}, ok)
	httplimittest.Admits(t, h, request("GET", alice, "Plan", "free", "Tenant", "f"), 1)
	httplimittest.Admits(t, h, request("GET", alice, "Plan", "paid", "Tenant", "p"), 5)
	for range 20 {
		wantStatus(t, "staff", get(h, alice, "Plan", "staff", "Tenant", "s"), 200)
	}
	wantStatus(t, "a plan that does not exist", get(h, alice, "Plan", "none", "Tenant", "n"), 503)
	plan := func(*http.Request) *weir.Rule { return plans["paid"] }
	h = wrap(t, httplimit.Options{Rules: []httplimit.Rule{{Limit: "plan=5/m", Key: httplimit.Everyone}, {Plan: plan}}}, ok)
	wantStatus(t, "a plan with the name of another rule", get(h, alice), 503)
}

func TestCostsAreTaken(t *testing.T) {
	h, _ := limit(t, httplimit.Rule{Limit: "client=10/m", Cost: func(r *http.Request) int64 { return r.ContentLength }}, ok)
	post := func(body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		return answer(h, r)
	}
	wantStatus(t, "6 of 10", post("123456"), 200)
	wantStatus(t, "6 of 4", post("123456"), 429)
	wantStatus(t, "4 of 4", post("1234"), 200)
	w := post("12345678901")
	wantStatus(t, "more than ever fits", w, 429)
	wantHeader(t, "more than ever fits", w.Header(), "Retry-After", "")
	r := httptest.NewRequest("POST", "/", strings.NewReader("x"))
	r.ContentLength = -1
	wantStatus(t, "a negative cost", answer(h, r), 503)
}

func TestSkippedRequestsAndPreflightsAreFree(t *testing.T) {
	clock := httplimittest.NewClock(start)
	options := httplimit.Options{
		Engine: clock.Engine(), Rules: []httplimit.Rule{{Limit: "client=1/m"}},
		Skip: func(r *http.Request) bool { return r.Header.Get("Probe") != "" },
	}
	h := wrap(t, options, ok)
	preflight := []string{"Origin", "https://app.example", "Access-Control-Request-Method", "POST"}
	for range 5 {
		wantStatus(t, "skipped", get(h, alice, "Probe", "1"), 200)
		wantStatus(t, "preflight", answer(h, request("OPTIONS", alice, preflight...)), 200)
	}
	wantStatus(t, "first", answer(h, request("OPTIONS", alice)), 200)
	wantStatus(t, "OPTIONS that is no preflight", answer(h, request("OPTIONS", alice)), 429)
	options.LimitPreflights = true
	wantStatus(t, "limited preflight", answer(wrap(t, options, ok), request("OPTIONS", alice, preflight...)), 429)
}

func TestMissingKeysGetWhatWasChosen(t *testing.T) {
	for _, tt := range []struct {
		missing       front.Missing
		first, second int
	}{
		{httplimit.MissingShares, 200, 429},
		{httplimit.MissingRefused, 400, 400},
		{httplimit.MissingUnlimited, 200, 200},
	} {
		h, _ := limit(t, httplimit.Rule{Limit: "key=1/m", Key: httplimit.Header("User"), Missing: tt.missing}, ok)
		if first, second := get(h, alice).Code, get(h, bob).Code; first != tt.first || second != tt.second {
			t.Errorf("missing keys by policy %d: status %d and %d, want %d and %d", tt.missing, first, second, tt.first, tt.second)
		}
		wantStatus(t, "a key", get(h, alice, "User", "u"), 200)
	}
}

func TestDryRunCountsAndRefusesNothing(t *testing.T) {
	clock := httplimittest.NewClock(start)
	var refused atomic.Int64
	h := wrap(t, httplimit.Options{
		Engine: clock.Engine(), Rules: []httplimit.Rule{{Limit: "client=leaky bucket 1/m queue 1"}}, MaxWait: time.Hour,
		DryRun: func(d layer.ShadowDecision) {
			if !d.Shadow.Allowed {
				refused.Add(1)
			}
		},
	}, ok)
	for range 5 { // a wait for the bucket would never end, because the clock stands
		w := get(h, alice)
		wantStatus(t, "dry run", w, 200)
		wantHeader(t, "dry run", w.Header(), "RateLimit", "")
	}
	eventually(t, "3 of 5 refusals aside", func() bool { return refused.Load() == 3 })
}

// What a request gives back counts in a dry run as it would in force.
func TestADryRunSettlesCosts(t *testing.T) {
	var decided, refused atomic.Int64
	h := wrap(t, httplimit.Options{Rules: []httplimit.Rule{{Limit: "client=2/h", After: httplimit.Failures}}, DryRun: func(d layer.ShadowDecision) {
		decided.Add(1)
		if !d.Shadow.Allowed {
			refused.Add(1)
		}
	}}, ok)
	for range 5 {
		wantStatus(t, "dry run", get(h, alice), 200)
	}
	eventually(t, "5 decisions aside", func() bool { return decided.Load() == 5 })
	if n := refused.Load(); n != 0 {
		t.Errorf("%d of 5 requests that cost nothing would have been refused, want none", n)
	}
}
