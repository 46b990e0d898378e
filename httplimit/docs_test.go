package httplimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/httplimit/httplimittest"
	"github.com/weirflow/weir/layer"
)

// docs/howto/http.md shows functions of this file, whole or in part.

// perClient limits the clients of a server that faces the internet.
func perClient(mux http.Handler) (http.Handler, error) {
	limited, err := httplimit.PerClient("60/m and 1000/d")
	if err != nil {
		return nil, err
	}
	return limited(mux), nil
}

// behindProxies limits the clients of a server that only proxies can reach.
func behindProxies(mux http.Handler) (http.Handler, error) {
	client, err := httplimit.NewClient(httplimit.ClientOptions{
		Trusted: []string{"10.0.0.0/8", "2001:db8:1::/48"},
	})
	if err != nil {
		return nil, err
	}
	limited, err := httplimit.New(httplimit.Options{
		Client: client,
		Rules:  []httplimit.Rule{{Limit: "60/m and 1000/d"}},
	})
	if err != nil {
		return nil, err
	}
	return limited(mux), nil
}

// perTenant limits each tenant by its plan, and all of them together. The engine
// is that of this process, or one in Redis.
func perTenant(engine weir.Engine, planOf func(*http.Request) *weir.Rule) (func(http.Handler) http.Handler, error) {
	return httplimit.New(httplimit.Options{
		Engine: engine,
		Rules: []httplimit.Rule{
			{Plan: planOf, Key: httplimit.Header("Tenant"), Missing: httplimit.MissingRefused},
			{Limit: "all=1000/s", Key: httplimit.Everyone},
		},
	})
}

// acrossMachines limits clients across three machines, and has count told what becomes of each request. While Redis is away, each
// machine admits its third.
func acrossMachines(redis weir.Engine, count func(context.Context, layer.Observation)) (func(http.Handler) http.Handler, error) {
	return httplimit.New(httplimit.Options{
		Engine:  redis,
		Guard:   layer.GuardOptions{OnFailure: layer.Local, Peers: 3},
		Observe: count,
		Rules:   []httplimit.Rule{{Limit: "api=60/m"}},
	})
}

// logins counts failed attempts, by client and by account.
func logins(account httplimit.Key) (func(http.Handler) http.Handler, error) {
	return httplimit.New(httplimit.Options{
		Rules: []httplimit.Rule{
			{Limit: "login-client=20/m", After: httplimit.Failures},
			{Limit: "login-account=5/m and fixed window 50/1d", Key: account, After: httplimit.Failures},
		},
	})
}

// downloads admits ten requests a minute, and two at a time.
func downloads() (func(http.Handler) http.Handler, error) {
	return httplimit.New(httplimit.Options{
		Rules: []httplimit.Rule{{Limit: "download=10/m and concurrency 2"}},
	})
}

// Every step from the shortest middleware is one line.
func TestEachStepFromPerClientIsOneLine(t *testing.T) {
	must := func(limited func(http.Handler) http.Handler, err error) func(http.Handler) http.Handler {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return limited
	}
	plan := mustRule(t, "plan=3/m")
	planOf := func(*http.Request) *weir.Rule { return plan }
	shared := weir.NewMemory(weir.MemoryOptions{}) // or one of redislimit
	client := must(httplimit.PerClient("60/m and 1000/d"))
	user := must(httplimit.PerKey("60/m and 1000/d", httplimit.Header("X-User")))
	apiKey := must(httplimit.PerKey("60/m and 1000/d", httplimit.Hashed(httplimit.Header("X-Api-Key"))))
	several := must(httplimit.New(httplimit.Options{Rules: []httplimit.Rule{{Limit: "60/m"}, {Limit: "all=1000/s", Key: httplimit.Everyone}}}))
	plans := must(httplimit.New(httplimit.Options{Rules: []httplimit.Rule{{Plan: planOf, Key: httplimit.Header("Tenant")}}}))
	redis := must(httplimit.New(httplimit.Options{Engine: shared, Rules: []httplimit.Rule{{Limit: "api=60/m and 1000/d"}}}))
	report := func(layer.ShadowDecision) {}
	dry := must(httplimit.New(httplimit.Options{DryRun: report, Rules: []httplimit.Rule{{Limit: "60/m"}}}))
	wantStatus(t, "a dry run", get(dry(ok), alice), 200)
	for n, limited := range map[int][]func(http.Handler) http.Handler{60: {client, user, apiKey, several, redis}, 3: {plans}} {
		for _, l := range limited {
			httplimittest.Admits(t, l(ok), request("GET", alice, "X-User", "u", "X-Api-Key", "k", "Tenant", "t"), n)
		}
	}
}

func TestTheMiddlewaresOfTheDocumentWork(t *testing.T) {
	admits := func(name string, h http.Handler, err error, r *http.Request, n int) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		httplimittest.Admits(t, h, r, n)
	}
	h, err := perClient(ok)
	admits("perClient", h, err, request("GET", alice), 60)
	h, err = behindProxies(ok)
	admits("behindProxies", h, err, request("GET", "10.1.2.3:80", "X-Forwarded-For", "192.0.2.1"), 60)
	plan := mustRule(t, "plan=3/m")
	limited, err := perTenant(weir.NewMemory(weir.MemoryOptions{}), func(*http.Request) *weir.Rule { return plan })
	admits("perTenant", limited(ok), err, request("GET", alice, "Tenant", "acme"), 3)
	seen := 0
	away := broken(weir.NewMemory(weir.MemoryOptions{}), errBoom)
	limited, err = acrossMachines(away, func(_ context.Context, o layer.Observation) { seen++ })
	admits("acrossMachines without its engine", limited(ok), err, request("GET", alice), 20)
	if seen != 21 {
		t.Errorf("%d requests were observed, want the 20 that were admitted and the one that was not", seen)
	}
	limited, err = logins(httplimit.Header("Account"))
	fails := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	admits("logins", limited(fails), err, request("POST", alice, "Account", "a"), 5)
	limited, err = downloads()
	admits("downloads", limited(ok), err, request("GET", alice), 10)
}

// docs/start/api.md shows the header fields and the body of a refusal.
func TestTheStartPageShowsARefusal(t *testing.T) {
	page, err := os.ReadFile("../docs/start/api.md")
	if err != nil {
		t.Fatal(err)
	}
	limited, err := httplimit.PerClient("token bucket 5/s burst 10")
	if err != nil {
		t.Fatal(err)
	}
	var w *httptest.ResponseRecorder
	for range 11 {
		w = httptest.NewRecorder()
		limited(ok).ServeHTTP(w, request("GET", alice))
	}
	shown := []string{w.Body.String()}
	for _, name := range []string{"Content-Type", "Ratelimit", "Ratelimit-Policy", "Retry-After"} {
		shown = append(shown, name+": "+w.Header().Get(name)+"\n")
	}
	for _, text := range shown {
		if !strings.Contains(string(page), text) {
			t.Errorf("docs/start/api.md does not show %q", text)
		}
	}
}
