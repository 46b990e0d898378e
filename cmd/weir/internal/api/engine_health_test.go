package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// flaky is an engine that fails on demand.
type flaky struct {
	weir.Engine
	fails atomic.Bool
	takes atomic.Int64
}

func newFlaky(t *testing.T) (*flaky, *API) {
	engine := &flaky{}
	engine.Engine = weir.Wrap(weir.NewMemory(weir.MemoryOptions{}), func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		if c.Op == weir.OpTake {
			engine.takes.Add(1)
			if engine.fails.Load() {
				return weir.Answer{}, errors.New("secret-host:6379 is gone")
			}
		}
		return next(ctx, c)
	})
	api := newAPI(t, engine, usual)
	api.reason = func(error) string { return "its server is gone" }
	return engine, api
}

func TestReadinessEndsOnceTheEngineHasFailedFor5Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, api := newFlaky(t)
		engine.fails.Store(true)
		post(api, "/v1/take", `{"key":"a"}`)
		time.Sleep(unreadyAfter - 1)
		post(api, "/v1/take", `{"key":"a"}`)
		if w := get(api, "/readyz"); w.Code != http.StatusOK {
			t.Errorf("just before 5s: got %d %s, want 200", w.Code, w.Body)
		}
		time.Sleep(time.Nanosecond)
		checkProblem(t, "after 5s", get(api, "/readyz"), fault{status: http.StatusServiceUnavailable, detail: "the engine has failed for 5s: its server is gone"})
		if w := get(api, "/healthz"); w.Code != http.StatusOK {
			t.Errorf("healthz: got %d, want 200: the process is alive", w.Code)
		}
		engine.fails.Store(false)
		post(api, "/v1/take", `{"key":"a"}`)
		if w := get(api, "/readyz"); w.Code != http.StatusOK {
			t.Errorf("after the first success: got %d %s, want 200", w.Code, w.Body)
		}
		engine.fails.Store(true)
		post(api, "/v1/take", `{"key":"a"}`)
		if w := get(api, "/readyz"); w.Code != http.StatusOK {
			t.Errorf("at the first failure after it: got %d %s, want 200", w.Code, w.Body)
		}
	})
}

func TestRequestsThatAreWrongOrLeftAreNoFailureOfTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, api := newFlaky(t)
		post(api, "/v1/take", `{"key":"a","cost":-1}`)
		engine.fails.Store(true)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		api.ServeHTTP(discard{http.Header{}}, takeWithin(gone))
		time.Sleep(2 * unreadyAfter)
		if w := get(api, "/readyz"); w.Code != http.StatusOK {
			t.Errorf("got %d %s, want 200", w.Code, w.Body)
		}
	})
}

func takeWithin(ctx context.Context) *http.Request {
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "/v1/take", strings.NewReader(`{"key":"a"}`))
	return r
}

// Load balancers send no requests to a daemon that is not ready.
func TestWatchNoticesFailureAndRecoveryWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, api := newFlaky(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go api.Watch(ctx)
		engine.fails.Store(true)
		time.Sleep(probeGap + unreadyAfter + time.Millisecond)
		if w := get(api, "/readyz"); w.Code != http.StatusServiceUnavailable {
			t.Errorf("an engine that fails, without traffic: got %d %s, want 503", w.Code, w.Body)
		}
		engine.fails.Store(false)
		time.Sleep(probeGap)
		if w := get(api, "/readyz"); w.Code != http.StatusOK {
			t.Errorf("an engine that is well again, without traffic: got %d %s, want 200", w.Code, w.Body)
		}
	})
}

func TestWatchAsksABusyEngineNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, api := newFlaky(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go api.Watch(ctx)
		for range 100 {
			time.Sleep(probeGap / 10)
			post(api, "/v1/take", `{"key":"a"}`)
		}
		if got := engine.takes.Load(); got != 100 {
			t.Errorf("100 requests made %d takes", got)
		}
	})
}

func TestProbeLeavesNothingBehind(t *testing.T) {
	engine := weir.NewMemory(weir.MemoryOptions{})
	for range 30 {
		if err := Probe(t.Context(), engine); err != nil {
			t.Fatal(err)
		}
		d, err := engine.Peek(t.Context(), probe.For("", 1))
		if err != nil || d.Remaining != 10 {
			t.Fatalf("after a probe its key has %+v, %v, want a fresh one", d, err)
		}
	}
}
