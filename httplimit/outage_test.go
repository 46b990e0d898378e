package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/layer"
)

// A refusal because the engine is away is no refusal by a limit.
func TestAnOutageFollowsThePolicyOfTheGuard(t *testing.T) {
	away := broken(weir.NewMemory(weir.MemoryOptions{}), errors.New("connection refused"))
	for policy, want := range map[layer.Policy]struct {
		status  [2]int
		results string
	}{
		layer.Deny: {[2]int{503, 503}, "away away"}, layer.Local: {[2]int{200, 429}, "admitted refused"}, layer.Allow: {[2]int{200, 200}, "admitted admitted"},
	} {
		var results []string
		h := wrap(t, httplimit.Options{Engine: away, Guard: layer.GuardOptions{OnFailure: policy, Peers: 2}, Logger: slog.New(slog.DiscardHandler),
			Observe: func(_ context.Context, o layer.Observation) { results = append(results, o.Result()) }, Rules: []httplimit.Rule{{Limit: "client=2/h"}}}, ok)
		for i, status := range want.status {
			got := get(h, alice)
			wantStatus(t, policy.String(), got, status)
			if status == 503 && !strings.Contains(got.Body.String(), `"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"`) {
				t.Errorf("request %d under %s: got %s, want the problem of a reduced capacity", i+1, policy, got.Body)
			}
			if _, says := got.Header()["Ratelimit-Policy"]; says != (policy == layer.Local) {
				t.Errorf("request %d under %s: the fields are %v, want a limit only if one decided", i+1, policy, got.Header())
			}
		}
		if got := strings.Join(results, " "); got != want.results {
			t.Errorf("%s: observed %s, want %s", policy, got, want.results)
		}
	}
}

// What a request did not use comes back where it was taken: to the share of this process while the engine is away.
func TestCostsOfAnOutageAreSettledHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := weir.NewMemory(weir.MemoryOptions{})
		var away atomic.Bool
		away.Store(true)
		engine := remote(memory, func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
			if away.Load() {
				return weir.Answer{}, errors.New("connection refused")
			}
			return next(ctx, c)
		})
		rule := mustRule(t, "tokens=fixed window 100/366d")
		h := wrap(t, httplimit.Options{Engine: engine, Guard: layer.GuardOptions{OnFailure: layer.Local, Peers: 1}, Logger: slog.New(slog.DiscardHandler),
			Rules: []httplimit.Rule{{Rule: rule, Key: httplimit.Everyone, Cost: func(*http.Request) int64 { return 50 },
				After: func(*http.Request, httplimit.Answer, int64) int64 { return 1 }}}}, ok)
		for i := range 20 {
			wantStatus(t, fmt.Sprintf("request %d of an outage", i), get(h, alice), 200)
		}
		away.Store(false)
		time.Sleep(2 * time.Second)
		if d, err := memory.Peek(t.Context(), rule.For("all", 0)); err != nil || d.Remaining != 80 {
			t.Errorf("the engine has %d left and %v, want 80 after 20 requests of one unit", d.Remaining, err)
		}
	})
}

// Middlewares with the engine of one program share its guard.
func TestAnEngineWithAGuardStaysAsItIs(t *testing.T) {
	guard, err := layer.Guard(broken(weir.NewMemory(weir.MemoryOptions{}), errBoom), layer.GuardOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	wantStatus(t, "an engine that is away", get(wrap(t, httplimit.Options{Engine: guard, Rules: []httplimit.Rule{{Limit: "client=2/h"}}}, ok), alice), 503)
	if got := guard.Stats().Denied; got != 1 {
		t.Errorf("the guard of the program denied %d requests, want 1", got)
	}
	_, err = httplimit.New(httplimit.Options{Engine: guard, Guard: layer.GuardOptions{OnFailure: layer.Allow}, Rules: []httplimit.Rule{{Limit: "client=2/h"}}})
	if _, refused := errors.AsType[*weir.OptionError](err); !refused {
		t.Errorf("another policy for an engine with a guard: %v, want an error, because it would have no effect", err)
	}
}

func TestAClientThatHammersCostsTheEngineACallASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		engine := remote(weir.NewMemory(weir.MemoryOptions{}), func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
			calls++
			return next(ctx, c)
		})
		h := wrap(t, httplimit.Options{Engine: engine, Rules: []httplimit.Rule{{Limit: "client=1/h"}}}, ok)
		for i := range 100 {
			wantStatus(t, "hammering", get(h, alice), map[bool]int{true: 200, false: 429}[i == 0])
		}
		if calls != 2 {
			t.Errorf("the engine was called %d times in an instant, want for the admission and the refusal", calls)
		}
	})
}

func TestObserveIsToldTheRuleOfThePlanAndTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := mustRule(t, "gold=1/s")
		var seen []layer.Observation
		h := wrap(t, httplimit.Options{Wait: time.Minute, Rules: []httplimit.Rule{{Plan: func(*http.Request) *weir.Rule { return plan }, Key: httplimit.Everyone}},
			Observe: func(_ context.Context, o layer.Observation) { o.Requests = nil; seen = append(seen, o) }}, ok)
		get(h, alice)
		get(h, alice)
		if len(seen) != 2 {
			t.Fatalf("observed %d requests, want each of 2 once", len(seen))
		}
		if o := seen[1]; o.Rule != "gold" || o.Key != "all" || o.Cost != 1 || !o.Decision.Allowed || o.Took != time.Second {
			t.Errorf("observed %+v, want the plan gold, the key and the second that the request waited", o)
		}
	})
}
