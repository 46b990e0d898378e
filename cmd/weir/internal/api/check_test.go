package api

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/internal/layertest"
)

// ask sends a check from an address, with header fields by turns of name and value.
func ask(h http.Handler, method, target, from string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = from
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const gateway = "10.0.0.1:4711"

// newGateways is an API with check options, whose gateways are 10.0.0.0/8.
func newGateways(t *testing.T, o CheckOptions, rules ...string) *API {
	t.Helper()
	f := newFixture(t, rules...)
	client, err := httplimit.NewClient(httplimit.ClientOptions{Trusted: []string{"10.0.0.0/8"}, Header: o.Key, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	o.Gateways = client
	o.Status = http.StatusTooManyRequests
	f.Check = o
	return f.API
}

func TestACheckAnswersByStatus(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		f := newFixture(t, usual, "login=fixed window 3/1h")
		for i := range 5 {
			w := ask(f, method, "/v1/check?rule=login&key=alice", gateway)
			want, retry := http.StatusNoContent, ""
			if i >= 3 {
				want, retry = http.StatusTooManyRequests, "2800"
			}
			if w.Code != want || w.Header().Get("Retry-After") != retry {
				t.Errorf("%s %d: %d, Retry-After %q, want %d and %q", method, i+1, w.Code, w.Header().Get("Retry-After"), want, retry)
			}
			if got := w.Header().Get("RateLimit-Policy"); got != `"login";q=3;w=3600` {
				t.Errorf("%s %d: RateLimit-Policy %q", method, i+1, got)
			}
			if w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s %d: Cache-Control is %q, want no-store", method, i+1, w.Header().Get("Cache-Control"))
			}
		}
		w := ask(f, method, "/v1/check?rule=login&key=alice", gateway)
		if got := w.Header().Get("RateLimit"); got != `"login";r=0;t=2800` {
			t.Errorf("%s: refused with RateLimit %q", method, got)
		}
		if !strings.Contains(w.Body.String(), `"violated-policies":["login"]`) {
			t.Errorf("%s: refused with %s, which does not name the rule", method, w.Body)
		}
		if w := ask(f, method, "/v1/check?rule=login&key=bob", gateway); w.Code != http.StatusNoContent {
			t.Errorf("%s: another key got %d", method, w.Code)
		}
	}
}

func TestAChecksCostAndDefaults(t *testing.T) {
	f := newFixture(t, usual)
	for _, step := range []struct {
		query string
		want  int
	}{
		{"key=a&cost=19", 204}, {"key=a", 204}, {"key=a", 429}, {"key=a&cost=0", 204}, {"key=", 204}, {"key=b&cost=21", 429},
	} {
		if w := ask(f, "GET", "/v1/check?"+step.query, gateway); w.Code != step.want {
			t.Errorf("%s: %d %s, want %d", step.query, w.Code, w.Body, step.want)
		}
	}
	// A check and a take count on the same key.
	if w := post(f, "/v1/take", `{"key":"a"}`); !strings.Contains(w.Body.String(), `"allowed":false`) {
		t.Errorf("take after checks of the same key: %s, want a refusal", w.Body)
	}
}

func TestARefusedCheckHasTheStatusOfTheFlag(t *testing.T) {
	f := newFixture(t, "default=1/h")
	f.Check.Status = http.StatusForbidden
	ask(f, "GET", "/v1/check?key=a", gateway)
	w := ask(f, "GET", "/v1/check?key=a", gateway, "Accept", "text/html")
	if w.Code != http.StatusForbidden || w.Header().Get("Retry-After") != "3600" {
		t.Errorf("refused with %d, Retry-After %q, want 403 and 3600", w.Code, w.Header().Get("Retry-After"))
	}
	if got := w.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("a browser gets %q, want plain text", got)
	}
}

// Each row is a check by a gateway that names the key in a header field, and the key that it counts for.
func TestKeysOfHeaderFields(t *testing.T) {
	for _, tt := range []struct {
		name, field string
		values      []string
		want        string
	}{
		{"one hop", "X-Forwarded-For", []string{"192.0.2.1"}, "192.0.2.1"},
		{"spoofed before the gateway's", "X-Forwarded-For", []string{"6.6.6.6, 192.0.2.1"}, "192.0.2.1"},
		{"spoofed line", "X-Forwarded-For", []string{"6.6.6.6", "192.0.2.1"}, "192.0.2.1"},
		{"two gateways", "X-Forwarded-For", []string{"6.6.6.6, 192.0.2.1, 10.0.0.2"}, "192.0.2.1"},
		{"mapped", "X-Forwarded-For", []string{"::ffff:192.0.2.1"}, "192.0.2.1"},
		{"network", "X-Forwarded-For", []string{"2001:db8:1:2:3::4"}, "2001:db8:1:2::/64"},
		{"forwarded", "Forwarded", []string{"for=6.6.6.6, for=192.0.2.1;proto=http"}, "192.0.2.1"},
		{"address", "X-Real-Ip", []string{"192.0.2.1"}, "192.0.2.1"},
		{"ipv6 address", "X-Real-Ip", []string{"2001:db8:1:2:3::4"}, "2001:db8:1:2::/64"},
		{"user", "X-User", []string{"alice"}, "alice"},
	} {
		api := newGateways(t, CheckOptions{Key: tt.field}, "default=1/h")
		var fields []string
		for _, value := range tt.values {
			fields = append(fields, tt.field, value)
		}
		if w := ask(api, "GET", "/v1/check", gateway, fields...); w.Code != http.StatusNoContent {
			t.Errorf("%s: %d %s, want 204", tt.name, w.Code, w.Body)
		}
		if w := post(api, "/v1/peek", `{"key":"`+tt.want+`"}`); !strings.Contains(w.Body.String(), `"allowed":false`) {
			t.Errorf("%s: the check did not count for %s", tt.name, tt.want)
		}
	}
}

func TestRuleAndCostOfHeaderFields(t *testing.T) {
	api := newGateways(t, CheckOptions{Rule: "X-Rule", Key: "X-User", Cost: "X-Cost"}, "default=1/h", "big=10/h")
	for _, step := range []struct {
		fields []string
		want   int
	}{
		{[]string{"X-User", "a", "X-Rule", "big", "X-Cost", "9"}, 204},
		{[]string{"X-User", "a", "X-Rule", "big", "X-Cost", "2"}, 429},
		{[]string{"X-User", "a"}, 204}, // the default rule, cost 1
		{[]string{"X-User", "a"}, 429},
	} {
		if w := ask(api, "GET", "/v1/check", gateway, step.fields...); w.Code != step.want {
			t.Errorf("%q: %d %s, want %d", step.fields, w.Code, w.Body, step.want)
		}
	}
}

func TestFaultyChecksSayWhatAndWhere(t *testing.T) {
	rules := []string{usual, "jobs=concurrency 2 lease 1m", "slow=leaky bucket 1/s queue 100", "queue=leaky bucket 10/s queue 5"}
	byQuery, byField := newFixture(t, rules...).API, newGateways(t, CheckOptions{Key: "X-User", Cost: "X-Cost"}, rules...)
	const page = "https://evil.example"
	for _, tt := range []struct {
		api    *API
		query  string
		from   string
		fields []string
		field  string
		detail string
	}{
		{byQuery, "", gateway, nil, "key", "key is missing"},
		{byQuery, "key=a&key=b", gateway, nil, "key", "key occurs twice"},
		{byQuery, "key=%ff", gateway, nil, "key", "key is not UTF-8"},
		{byQuery, "key=" + strings.Repeat("k", 4097), gateway, nil, "key", "key has 4097 bytes, more than 4096"},
		{byQuery, "key=a&x=1", gateway, nil, "query", `query has the field "x", not one of rule, key, cost`},
		{byQuery, "key=%zz", gateway, nil, "query", "query is not URL-encoded"},
		{byQuery, "key=a&rule=other", gateway, nil, "rule", `rule is "other", and no rule has that name`},
		{byQuery, "key=a&rule=jobs", gateway, nil, "rule", `rule is "jobs", which holds slots, which a check cannot release; delete the rule, or ask /v1/reserve instead`},
		{byQuery, "key=a&rule=slow", gateway, nil, "rule", `rule is "slow", which would delay a request for longer than 10s; shorten its queue, or add nodelay`},
		{byQuery, "key=a&cost=-1", gateway, nil, "cost", `cost is "-1", not a whole number of 0 or more, below 2^63, in plain digits`},
		{byQuery, "key=a&cost=9223372036854775808", gateway, nil, "cost", `cost is "9223372036854775808", not a whole number of 0 or more, below 2^63, in plain digits`},
		{byQuery, "key=a", gateway, []string{"Sec-Fetch-Site", "cross-site"}, "Origin", pageDetail},
		{byQuery, "key=a", gateway, []string{"Origin", page}, "Origin", pageDetail},
		{byField, "", "192.0.2.1:80", []string{"X-User", "a"}, "peer", "peer 192.0.2.1:80 is no gateway of this daemon; weir serve --check-trust ADDRESS names one"},
		{byField, "", gateway, nil, "X-User", "X-User is missing; the gateway must send it with each check"},
		{byField, "", gateway, []string{"X-User", ""}, "X-User", "X-User is missing; the gateway must send it with each check"},
		{byField, "", gateway, []string{"X-User", "a", "X-User", "b"}, "X-User", "X-User occurs twice"},
		{byField, "key=a", gateway, []string{"X-User", "a"}, "key", "key is in the query, but --check-key takes it from the header X-User"},
		{byField, "", gateway, []string{"X-User", "a", "X-Cost", "x"}, "cost", `cost is "x", not a whole number of 0 or more, below 2^63, in plain digits`},
	} {
		w := ask(tt.api, "GET", "/v1/check?"+tt.query, tt.from, tt.fields...)
		checkProblem(t, tt.query, w, fault{status: http.StatusBadRequest, field: tt.field, detail: tt.detail})
	}
	// The browser of a client may have set these, and the gateway's own field shows that no page asks directly.
	if w := ask(byField, "GET", "/v1/check", gateway, "X-User", "a", "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusNoContent {
		t.Errorf("a check with the key in a header field, for a client that follows a link: %d %s, want 204", w.Code, w.Body)
	}
}

const pageDetail = "Origin or Sec-Fetch-Site is that of a web page elsewhere; a gateway must leave out the header fields of its clients, or name the key in one: weir serve --check-key"

func TestOtherMethodsOfCheckAreRefused(t *testing.T) {
	for _, method := range []string{"HEAD", "PUT", "OPTIONS"} {
		w := ask(newFixture(t, usual), method, "/v1/check?key=a", gateway)
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, POST" {
			t.Errorf("%s: %d, Allow %q, want 405 and GET, POST", method, w.Code, w.Header().Get("Allow"))
		}
	}
}

func TestACheckThatCannotBeDecidedIs503(t *testing.T) {
	api := newAPI(t, undecided(errors.New("no route to 10.1.2.3")), usual)
	w := ask(api, "GET", "/v1/check?key=a", gateway)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" || strings.Contains(w.Body.String(), "10.1.2.3") {
		t.Errorf("%d, Retry-After %q, %s, want 503 without the address of the engine", w.Code, w.Header().Get("Retry-After"), w.Body)
	}
}

// A gateway cannot obey a delay, so the answer comes when the client may go ahead.
func TestACheckHoldsADelayedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(t, weir.NewMemory(weir.MemoryOptions{}), "default=leaky bucket 2/s queue 1")
		ask(api, "GET", "/v1/check?key=a", gateway)
		began := time.Now()
		if w := ask(api, "GET", "/v1/check?key=a", gateway); w.Code != http.StatusNoContent || time.Since(began) != 500*time.Millisecond {
			t.Errorf("%d after %v, want 204 after 500ms", w.Code, time.Since(began))
		}
	})
}

func FuzzCheck(f *testing.F) {
	for _, seed := range [][2]string{{"key=a", ""}, {"key=a&cost=3&rule=default", "192.0.2.1"}, {"key=%41;x", "a, b"}, {"", "6.6.6.6, ::1"}} {
		f.Add(seed[0], seed[1])
	}
	rule, err := weir.ParseRule(usual)
	if err != nil {
		f.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	client, err := httplimit.NewClient(httplimit.ClientOptions{Trusted: []string{"10.0.0.0/8"}, Logger: quiet})
	if err != nil {
		f.Fatal(err)
	}
	var apis []*API
	for _, o := range []CheckOptions{{}, {Key: "X-Forwarded-For", Gateways: client}} {
		apis = append(apis, New(Options{Desk: decide.New(decide.Options{Engine: layertest.Around(weir.NewMemory(weir.MemoryOptions{})), Rules: []*weir.Rule{rule}, Log: quiet}), Log: quiet, Check: o}))
	}
	f.Fuzz(func(t *testing.T, query, forwarded string) {
		for _, api := range apis {
			r := httptest.NewRequest("GET", "/v1/check", nil)
			r.URL.RawQuery, r.RemoteAddr = query, gateway
			r.Header.Set("X-Forwarded-For", forwarded)
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			if w.Code != 204 && w.Code != 400 && w.Code != 429 {
				t.Errorf("%q, X-Forwarded-For %q: %d %s", query, forwarded, w.Code, w.Body)
			}
		}
	})
}
