package httplimit_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/layer"
)

func TestRefusalIsTextForClientsThatPreferIt(t *testing.T) {
	const text, document = "text/plain; charset=utf-8", "application/problem+json"
	tests := []struct{ accept, want string }{
		{"", document},
		{"*/*", document},
		{"application/json", document},
		{"application/problem+json, text/plain;q=0.5", document},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", text},
		{"text/plain", text},
		{"TEXT/*;q=0.2", text},
		{"text/html;q=0, */*", document},
		{"text/html;q=0.5, application/*", document},
		{"text/html;q=two", document},
	}
	h, _ := limit(t, httplimit.Rule{Limit: "client=deny all"}, ok)
	for _, tt := range tests {
		w := get(h, alice, "Accept", tt.accept)
		if got := w.Header().Get("Content-Type"); got != tt.want {
			t.Errorf("Accept %q: Content-Type %q, want %q", tt.accept, got, tt.want)
		}
		if !strings.Contains(w.Body.String(), "client") {
			t.Errorf("Accept %q: body %q does not name the rule", tt.accept, w.Body)
		}
	}
}

func TestARefusalSaysWhatTheLimitSays(t *testing.T) {
	for _, tt := range []struct {
		limit      string
		first, ask int64
		want       string
	}{
		{"c=300/h", 199, 200, `The cost is more than the 101 left of the limit \"c\". Retry in 1188 seconds.`},
		{"c=300/h", 300, 1, `The limit \"c\" is used up. Retry in 12 seconds.`},
		{"c=300/h", 0, 301, `The cost is more than the limit \"c\" ever admits.`},
		{"c=deny all", 0, 1, `The limit \"c\" admits nothing.`},
		{"c=sliding log 5/10s gap 1s", 1, 1, `The limit \"c\" needs a pause between requests. Retry in 1 second.`},
	} {
		synctest.Test(t, func(t *testing.T) {
			var cost int64
			h, _ := limit(t, httplimit.Rule{Limit: tt.limit, Cost: func(*http.Request) int64 { return cost }}, ok)
			for i, units := range []int64{tt.first, tt.ask} {
				cost = units
				if w := get(h, alice); i == 1 && !strings.Contains(w.Body.String(), `"detail":"`+tt.want+`"`) {
					t.Errorf("%s, %d units taken, %d asked: got %s, want %s", tt.limit, tt.first, tt.ask, w.Body, tt.want)
				}
			}
		})
	}
}

func TestRefuseWritesItsOwnAnswer(t *testing.T) {
	h := wrap(t, httplimit.Options{
		Rules: []httplimit.Rule{{Limit: "login=1/h"}, {Limit: "u=1/h", Key: httplimit.Header("User"), Missing: httplimit.MissingRefused}},
		Refuse: func(w http.ResponseWriter, r *http.Request, f httplimit.Refusal) {
			if f.Status != http.StatusTooManyRequests {
				f.Write(w, r)
				return
			}
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(f.Rule + " " + f.RetryAfter.String()))
		},
	}, ok)
	get(h, alice, "User", "u")
	w := get(h, alice, "User", "v")
	if w.Code != http.StatusTeapot || w.Body.String() != "login 1h0m0s" {
		t.Errorf("refusal is %d %q, want 418 %q", w.Code, w.Body, "login 1h0m0s")
	}
	wantHeader(t, "own answer", w.Header(), "Retry-After", "3600")
	wantStatus(t, "no user", get(h, alice), 400)
}

// remote returns an engine whose calls do makes, perhaps with engine. A reservation is a take, and no caller finds engine.
func remote(engine weir.Engine, do func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error)) (e weir.Engine) {
	e = weir.Kit.EngineOf(func(ctx context.Context, c weir.Call) (weir.Answer, error) {
		ctx, cancel := enginekit.Bound(ctx, &c)
		defer cancel()
		if c.Op == weir.OpReserve {
			return weir.Kit.Reserve(ctx, e, c)
		}
		return do(ctx, c, engine.Do)
	}, engine.Check)
	return e
}

// broken returns an engine whose takes fail.
func broken(engine weir.Engine, err error) weir.Engine {
	return remote(engine, func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		if c.Op == weir.OpTake {
			return weir.Answer{}, err
		}
		return next(ctx, c)
	})
}

func TestAnEngineThatFailsFollowsThePolicy(t *testing.T) {
	failing := broken(weir.NewMemory(weir.MemoryOptions{}), errors.New("no route to host"))
	h := wrap(t, httplimit.Options{Engine: failing, Rules: []httplimit.Rule{{Limit: "client=1/m"}}}, ok)
	w := get(h, alice)
	wantStatus(t, "by default", w, 503)
	wantHeader(t, "by default", w.Header(), "Retry-After", "1")
	if strings.Contains(w.Body.String(), "route") {
		t.Errorf("body %q tells clients about the engine", w.Body)
	}
	h = wrap(t, httplimit.Options{Engine: failing, Guard: layer.GuardOptions{OnFailure: layer.Allow}, Rules: []httplimit.Rule{{Limit: "client=1/m"}}}, ok)
	wantStatus(t, "Allow", get(h, alice), 200)
	h = wrap(t, httplimit.Options{Engine: failing, DryRun: func(layer.ShadowDecision) {}, Rules: []httplimit.Rule{{Limit: "client=1/m"}}}, ok)
	wantStatus(t, "a dry run", get(h, alice), 200)
	negative := httplimit.Rule{Limit: "client=1/m", Cost: func(*http.Request) int64 { return -1 }}
	h = wrap(t, httplimit.Options{Guard: layer.GuardOptions{OnFailure: layer.Allow}, Rules: []httplimit.Rule{negative}}, ok)
	wantStatus(t, "Allow and a request that no engine could decide", get(h, alice), 503)
}

// hanging returns an engine that does not answer until its context ends.
func hanging(engine weir.Engine) weir.Engine {
	return remote(engine, func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		if c.Op == weir.OpTake || c.Op == weir.OpReturn {
			<-ctx.Done()
			return weir.Answer{}, ctx.Err()
		}
		return next(ctx, c)
	})
}

func TestAnEngineThatHangsHoldsARequestForTheDeadline(t *testing.T) {
	for deadline, want := range map[time.Duration]time.Duration{0: 15 * time.Millisecond, time.Second: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h := wrap(t, httplimit.Options{
				Engine: hanging(weir.NewMemory(weir.MemoryOptions{})), Guard: layer.GuardOptions{Deadline: deadline},
				Rules: []httplimit.Rule{{Limit: "client=1/s"}},
			}, ok)
			began := time.Now()
			wantStatus(t, "a hanging engine", get(h, alice), 503)
			if waited := time.Since(began); waited != want {
				t.Errorf("the client waited %v with the deadline %v, want %v", waited, deadline, want)
			}
		})
	}
}

// The middleware gives back only what was taken.
func TestARequestThatAPolicyAllowsIsNotSettled(t *testing.T) {
	engine, rule := weir.NewMemory(weir.MemoryOptions{}), mustRule(t, "a=10/h")
	if _, err := engine.Take(t.Context(), rule.For("192.0.2.1", 5)); err != nil {
		t.Fatal(err)
	}
	h := wrap(t, httplimit.Options{
		Engine: broken(engine, errors.New("no route to host")), Guard: layer.GuardOptions{OnFailure: layer.Allow},
		Rules: []httplimit.Rule{{Rule: rule, After: httplimit.Failures}},
	}, ok)
	wantStatus(t, "Allow", get(h, alice), 200)
	if d, err := engine.Peek(t.Context(), rule.For("192.0.2.1", 0)); err != nil || d.Remaining != 5 {
		t.Errorf("%d of 10 remain (%v), want the 5 that remained before", d.Remaining, err)
	}
}

func TestRequestsThatNoEngineCanDecideAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines recordedLog
		negative := httplimit.Rule{Limit: "client=1/m", Cost: func(*http.Request) int64 { return -1 }}
		h := wrap(t, httplimit.Options{Logger: lines.logger(), Rules: []httplimit.Rule{negative}}, ok)
		for range 200 {
			get(h, alice)
			time.Sleep(time.Second)
		}
		if got := lines.count("could not decide"); got != 4 {
			t.Errorf("%d lines in 200 s, want 4: %v", got, lines.lines)
		}
	})
}

func TestScriptsCanReadRefusals(t *testing.T) {
	const app = "https://app.example"
	tests := []struct {
		name        string
		cors        httplimit.CORS
		origin      string
		allow, cred string
	}{
		{"no CORS", httplimit.CORS{}, app, "", ""},
		{"listed", httplimit.CORS{Origins: []string{app}, Credentials: true}, app, app, "true"},
		{"another origin", httplimit.CORS{Origins: []string{app}}, "https://evil.example", "", ""},
		{"any", httplimit.CORS{Origins: []string{"*"}}, app, "*", ""},
	}
	for _, tt := range tests {
		h := wrap(t, httplimit.Options{CORS: tt.cors, Rules: []httplimit.Rule{{Limit: "client=1/h"}}}, ok)
		admitted := get(h, alice, "Origin", tt.origin)
		wantHeader(t, tt.name+": admitted", admitted.Header(), "Access-Control-Allow-Origin", "") // the handler's to say
		w := get(h, alice, "Origin", tt.origin)
		wantStatus(t, tt.name, w, 429)
		wantHeader(t, tt.name, w.Header(), "Access-Control-Allow-Origin", tt.allow)
		wantHeader(t, tt.name, w.Header(), "Access-Control-Allow-Credentials", tt.cred)
		if got := strings.Contains(strings.Join(w.Header().Values("Vary"), ","), "Origin"); got != (tt.allow == app) {
			t.Errorf("%s: Vary is %q", tt.name, w.Header().Values("Vary"))
		}
		for _, headers := range []http.Header{admitted.Header(), w.Header()} {
			if got := strings.Contains(headers.Get("Access-Control-Expose-Headers"), "Retry-After, RateLimit,"); got != (tt.allow != "") {
				t.Errorf("%s: exposed are %q", tt.name, headers.Get("Access-Control-Expose-Headers"))
			}
		}
	}
	inner := wrap(t, httplimit.Options{Rules: []httplimit.Rule{{Limit: "client=deny all"}}}, ok)
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", app)
		inner.ServeHTTP(w, r)
	})
	w := get(outer, alice, "Origin", app)
	wantHeader(t, "CORS before", w.Header(), "Access-Control-Allow-Origin", app)
	if got := w.Header().Get("Access-Control-Expose-Headers"); !strings.Contains(got, "RateLimit") {
		t.Errorf("CORS before: exposed are %q, want the fields about limits", got)
	}
}

func TestALeakyBucketHoldsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := wrap(t, httplimit.Options{Rules: []httplimit.Rule{{Limit: "client=leaky bucket 1/s queue 2"}}}, ok)
		began := time.Now()
		statuses := make(chan [2]int, 4)
		for range 4 {
			go func() {
				w := get(h, alice)
				statuses <- [2]int{w.Code, int(time.Since(began) / time.Second)}
			}()
			synctest.Wait()
		}
		for _, want := range [][2]int{{200, 0}, {429, 0}, {200, 1}, {200, 2}} {
			if got := <-statuses; got != want {
				t.Errorf("status and second %v, want %v", got, want)
			}
		}
	})
}

func TestAClientThatLeavesIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reached := 0
		h := wrap(t, httplimit.Options{Rules: []httplimit.Rule{{Limit: "client=leaky bucket 1/s queue 2"}}}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
		get(h, alice)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		answer(h, request("GET", alice).WithContext(ctx))
		if waited := time.Since(began); reached != 1 || waited != 100*time.Millisecond {
			t.Errorf("handler called %d times, the second request held for %v; want 1 call and 100ms", reached, waited)
		}
	})
}
