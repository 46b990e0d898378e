package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/top"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/layer"
)

// fixture is an API over the memory engine with a clock that the test sets.
type fixture struct {
	*API
	now int64
}

func newFixture(t *testing.T, rules ...string) *fixture {
	t.Helper()
	f := &fixture{now: 1_700_000_000_000_000_000}
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return f.now }})
	keys := top.New()
	observed, err := layer.Observe(engine, layer.ObserveOptions{Decided: func(_ context.Context, o layer.Observation) { keys.Sample(o) }})
	if err != nil {
		t.Fatal(err)
	}
	f.API = newAPI(t, observed, rules...)
	f.API.Keys = keys
	return f
}

func newAPI(t *testing.T, engine weir.Engine, rules ...string) *API {
	t.Helper()
	return newAPIWith(t, decide.Options{Engine: layertest.Around(engine)}, rules...)
}

// newAPIWith returns an API of a desk.
func newAPIWith(t testing.TB, o decide.Options, rules ...string) *API {
	t.Helper()
	for _, text := range rules {
		rule, err := weir.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Rules = append(o.Rules, rule)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return New(Options{Desk: decide.New(o), Log: o.Log})
}

const usual = "default=token bucket 10/s burst 20"

// post sends a body and returns the recorded answer.
func post(h http.Handler, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestAnswersAreExact(t *testing.T) {
	const ms = int64(time.Millisecond)
	rules := []string{
		"slots=concurrency 2 lease 30s", "both=concurrency 9 lease 1500ms and concurrency 3 lease 2m and token bucket 9/s",
		usual, "thirds=token bucket 3/s burst 1", "line=leaky bucket 4/s queue 2", "day=fixed window 2/1d", "tab=token bucket 1/m burst 2",
		`odd "name"=token bucket 1/s`, "two=token bucket 9/s and sliding log 5/m gap 1s",
	}
	steps := []struct {
		wait       int64 // ns before the step
		path, body string
		want       string
	}{
		{0, "take", `{"key":"alice"}`, `{"allowed":true,"rule":"default","key":"alice","limit":20,"remaining":19,"retry_after":0,"reset_after":0.1,"delay":0}`},
		{0, "take", `{"key":"alice","cost":19}`, `{"allowed":true,"rule":"default","key":"alice","limit":20,"remaining":0,"retry_after":0,"reset_after":2,"delay":0}`},
		{0, "take", `{"key":"alice"}`, `{"allowed":false,"rule":"default","key":"alice","limit":20,"remaining":0,"retry_after":0.1,"reset_after":2,"delay":0,"refused_by":0,"cause":"count"}`},
		{0, "peek", `{"key":"alice","cost":2}`, `{"allowed":false,"rule":"default","key":"alice","limit":20,"remaining":0,"retry_after":0.2,"reset_after":2,"delay":0,"refused_by":0,"cause":"count"}`},
		{100*ms - 1, "take", `{"key":"alice"}`, `{"allowed":false,"rule":"default","key":"alice","limit":20,"remaining":0,"retry_after":0.000000001,"reset_after":1.900000001,"delay":0,"refused_by":0,"cause":"count"}`},
		{1, "take", `{"key":"alice"}`, `{"allowed":true,"rule":"default","key":"alice","limit":20,"remaining":0,"retry_after":0,"reset_after":2,"delay":0}`},
		{0, "take", `{"key":"alice","cost":21}`, `{"allowed":false,"rule":"default","key":"alice","limit":20,"remaining":0,"retry_after":null,"reset_after":2,"delay":0,"refused_by":0,"cause":"count"}`},
		{0, "take", `{"key":"bob","cost":0}`, `{"allowed":true,"rule":"default","key":"bob","limit":20,"remaining":20,"retry_after":0,"reset_after":0,"delay":0}`},
		{0, "take", `{"key":""}`, `{"allowed":true,"rule":"default","key":"","limit":20,"remaining":19,"retry_after":0,"reset_after":0.1,"delay":0}`},
		{0, "take", `{"rule":"thirds","key":"k"}`, `{"allowed":true,"rule":"thirds","key":"k","limit":1,"remaining":0,"retry_after":0,"reset_after":0.333333334,"delay":0}`},
		{0, "take", `{"rule":"thirds","key":"k"}`, `{"allowed":false,"rule":"thirds","key":"k","limit":1,"remaining":0,"retry_after":0.333333334,"reset_after":0.333333334,"delay":0,"refused_by":0,"cause":"count"}`},
		{0, "take", `{"rule":"line","key":"k"}`, `{"allowed":true,"rule":"line","key":"k","limit":3,"remaining":2,"retry_after":0,"reset_after":0.25,"delay":0}`},
		{0, "take", `{"rule":"line","key":"k"}`, `{"allowed":true,"rule":"line","key":"k","limit":3,"remaining":1,"retry_after":0,"reset_after":0.5,"delay":0.25}`},
		{0, "record", `{"rule":"tab","key":"k","cost":5}`, `{"allowed":false,"rule":"tab","key":"k","limit":2,"remaining":0,"retry_after":null,"reset_after":300,"delay":0,"refused_by":0,"cause":"count"}`},
		{0, "return", `{"rule":"tab","key":"k","cost":4}`, `{"allowed":true,"rule":"tab","key":"k","limit":2,"remaining":1,"retry_after":0,"reset_after":60,"delay":0}`},
		{0, "reset", `{"rule":"tab","key":"k","cost":-9}`, `{}`},
		{0, "peek", `{"rule":"tab","key":"k"}`, `{"allowed":true,"rule":"tab","key":"k","limit":2,"remaining":2,"retry_after":0,"reset_after":0,"delay":0}`},
		{0, "take", ` { "\u006bey" : "\"\u00e9\ud83d\ude00\\\n" , "rule" : "odd \"name\"" } ` + "\n", `{"allowed":true,"rule":"odd \"name\"","key":"\"é😀\\\n","limit":1,"remaining":0,"retry_after":0,"reset_after":1,"delay":0}`},
		{0, "take", `{"rule":"slots","key":"k","cost":2}`, `{"allowed":true,"rule":"slots","key":"k","limit":2,"remaining":0,"retry_after":0,"reset_after":30,"delay":0,"lease":30}`},
		{0, "take", `{"rule":"slots","key":"k"}`, `{"allowed":false,"rule":"slots","key":"k","limit":2,"remaining":0,"retry_after":30,"reset_after":30,"delay":0,"refused_by":0,"cause":"count","lease":30}`},
		{0, "return", `{"rule":"slots","key":"k","cost":1}`, `{"allowed":true,"rule":"slots","key":"k","limit":2,"remaining":1,"retry_after":0,"reset_after":30,"delay":0,"lease":30}`},
		{0, "take", `{"rule":"two","key":"k"}`, `{"allowed":true,"rule":"two","key":"k","limit":5,"remaining":0,"retry_after":0,"reset_after":60,"delay":0}`},
		{0, "take", `{"rule":"two","key":"k"}`, `{"allowed":false,"rule":"two","key":"k","limit":5,"remaining":0,"retry_after":1,"reset_after":60,"delay":0,"refused_by":1,"cause":"gap"}`},
		{0, "take", `{"requests":[{"rule":"slots","key":"k"},{"key":"k"},{"rule":"both","key":"k"}]}`, `{"allowed":true,"rule":"slots","key":"k","limit":2,"remaining":0,"retry_after":0,"reset_after":120,"delay":0,"lease":1.5}`},
	}
	f := newFixture(t, rules...)
	for i, s := range steps {
		f.now += s.wait
		w := post(f, "/v1/"+s.path, s.body)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || w.Body.String() != s.want+"\n" {
			t.Errorf("step %d: %s %s\n got %d %s %s\nwant 200 application/json %s", i, s.path, s.body, w.Code, w.Header().Get("Content-Type"), w.Body, s.want)
		}
	}
}

func TestRefusalsStartAfterTheBurst(t *testing.T) {
	f := newFixture(t, usual)
	for i := range 25 {
		w := post(f, "/v1/take", `{"key":"alice"}`)
		if want := fmt.Sprintf(`{"allowed":%t,`, i < 20); !strings.HasPrefix(w.Body.String(), want) {
			t.Errorf("request %d of one instant: got %s, want %s…", i+1, w.Body, want)
		}
	}
}

func TestSeveralRequestsAreTakenAllOrNothing(t *testing.T) {
	f := newFixture(t, usual, "tenant=token bucket 1/s burst 5")
	both := func(alice, acme int) string {
		return post(f, "/v1/take", fmt.Sprintf(`{"requests":[{"key":"alice","cost":%d},{"rule":"tenant","key":"acme","cost":%d}]}`, alice, acme)).Body.String()
	}
	for i, step := range []struct {
		alice, acme int
		want        string
	}{
		{1, 4, `{"allowed":true,"rule":"tenant","key":"acme","limit":5,"remaining":1,"retry_after":0,"reset_after":4,"delay":0}`},
		{1, 3, `{"allowed":false,"rule":"tenant","key":"acme","limit":5,"remaining":1,"retry_after":2,"reset_after":4,"delay":0,"refused_by":0,"cause":"count"}`},
		{19, 1, `{"allowed":true,"rule":"default","key":"alice","limit":20,"remaining":0,"retry_after":0,"reset_after":5,"delay":0}`},
	} {
		if got := both(step.alice, step.acme); got != step.want+"\n" {
			t.Errorf("step %d: alice %d and acme %d\n got %swant %s", i, step.alice, step.acme, got, step.want)
		}
	}
}

func TestTheSameKeyTwiceIsOneRequest(t *testing.T) {
	f := newFixture(t, usual)
	w := post(f, "/v1/take", `{"requests":[{"key":"a","cost":12},{"key":"a","cost":12}]}`)
	if want := `{"allowed":false,"rule":"default","key":"a","limit":20,"remaining":20,"retry_after":null,"reset_after":0,"delay":0,"refused_by":0,"cause":"count"}` + "\n"; w.Body.String() != want {
		t.Errorf("12 and 12 of 20: got %swant %s", w.Body, want)
	}
}

// undecided returns an engine that never decides. A nil error stands for an unknown cause.
func undecided(err error) weir.Engine {
	return weir.Kit.EngineOf(func(context.Context, weir.Call) (weir.Answer, error) {
		return weir.Answer{Decision: weir.Decision{Allowed: true}}, cmp.Or(err, errors.New("secret-host:6379 is gone"))
	}, func(...*weir.Rule) error { return nil })
}

// hung returns an engine whose server does not answer: each decision fails when the context ends.
func hung() weir.Engine {
	return weir.Kit.EngineOf(func(ctx context.Context, c weir.Call) (weir.Answer, error) {
		ctx, cancel := enginekit.Bound(ctx, &c)
		defer cancel()
		<-ctx.Done()
		return weir.Answer{}, fmt.Errorf("take: %w", ctx.Err())
	}, func(...*weir.Rule) error { return nil })
}

func TestEngineThatHangsIsWaitedForNoLongerThanPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPIWith(t, decide.Options{Engine: layertest.Around(hung()), Patience: 2 * time.Second}, usual)
		for _, verb := range []string{"take", "peek", "record", "reset"} {
			start := time.Now()
			w := post(api, "/v1/"+verb, `{"key":"alice"}`)
			if took := time.Since(start); took != 2*time.Second {
				t.Errorf("%s: answered after %v, want 2s", verb, took)
			}
			detail, counted := "the engine did not decide in time, and admitted nothing; ask again", "no"
			if verb != "peek" {
				detail, counted = detail+", though it may have counted this request", "unknown"
			}
			checkCounted(t, verb, w, fault{status: 503, detail: detail}, counted)
			if got := w.Header().Get("Retry-After"); got != "1" {
				t.Errorf("%s: Retry-After is %q, want 1", verb, got)
			}
		}
	})
}

// An engine without a guard fails every request.
func TestAFailingEngineIsLoggedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		api := newAPIWith(t, decide.Options{Engine: layertest.Around(undecided(nil)), Log: slog.New(slog.NewTextHandler(&log, nil))}, usual)
		for range 2500 {
			post(api, "/v1/take", `{"key":"alice"}`)
			time.Sleep(time.Millisecond)
		}
		if got := strings.Count(log.String(), "not_logged_before=999"); got != 2 || strings.Count(log.String(), "\n") != 3 {
			t.Errorf("2500 failures in 2.5 s made %d lines that tell of the 999 before them, want 2 of 3:\n%s", got, &log)
		}
	})
}

func TestEngineThatCannotDecideIs503AndAdmitsNothing(t *testing.T) {
	var log strings.Builder
	api := newAPIWith(t, decide.Options{Engine: layertest.Around(undecided(nil)), Log: slog.New(slog.NewTextHandler(&log, nil))}, usual)
	for _, path := range []string{"/v1/take", "/v1/reset"} {
		w := post(api, path, `{"key":"alice"}`)
		checkCounted(t, path, w, fault{status: 503, detail: "the engine could not decide, and admitted nothing; ask again, though it may have counted this request"}, "unknown")
	}
	if !strings.Contains(log.String(), "secret-host:6379 is gone") {
		t.Errorf("the log does not say why: %q", &log)
	}
}

// countedError is an error that says whether the engine has counted the request.
type countedError struct{ counted weir.Counted }

func (countedError) Error() string              { return "the server is gone" }
func (e countedError) WasCounted() weir.Counted { return e.counted }

func TestErrorsTellWhetherTheCostWasCounted(t *testing.T) {
	for _, test := range []struct {
		engine weir.Engine
		want   string
	}{
		{undecided(nil), "unknown"}, // the error does not say
		{undecided(countedError{}), "unknown"},
		{undecided(countedError{weir.CountedYes}), "yes"},
		{undecided(fmt.Errorf("could not decide: %w", countedError{weir.CountedNo})), "no"},
	} {
		for _, path := range []string{"/v1/take", "/v1/record", "/v1/reset"} {
			w := post(newAPI(t, test.engine, usual), path, `{"key":"alice"}`)
			if got := w.Body.String(); w.Code != 503 || !strings.Contains(got, `,"counted":"`+test.want+`",`) {
				t.Errorf("%s, %+v: got %d %s, want it counted: %s", path, test.engine, w.Code, got, test.want)
			}
		}
	}
}

func TestReadinessEndsBeforeDecisionsDo(t *testing.T) {
	f := newFixture(t, usual)
	if health, ready := get(f, "/healthz").Code, get(f, "/readyz").Code; health != 200 || ready != 200 {
		t.Errorf("running: healthz %d and readyz %d, want 200 and 200", health, ready)
	}
	f.Stopping()
	take := post(f, "/v1/take", `{"key":"a"}`)
	if health, ready := get(f, "/healthz").Code, get(f, "/readyz").Code; health != 200 || ready != 503 || take.Code != 200 {
		t.Errorf("stopping: healthz %d, readyz %d, take %d; want 200, 503, 200", health, ready, take.Code)
	}
	if got := take.Header()[strings.ToLower("Connection")]; len(got) != 1 || got[0] != "close" {
		t.Errorf("stopping: an answer has connection %q, want close, so that the client comes back elsewhere", got)
	}
	f.Ending()
	if got := post(f, "/v1/take", `{"key":"a"}`).Header()["Connection"]; len(got) != 1 || got[0] != "close" {
		t.Errorf("ending: an answer has Connection %q, want close", got)
	}
}

func TestAnswersAreJSONWhateverTheText(t *testing.T) {
	f := func(rule, key string, n int64) string {
		b := appendDecision(nil, weir.Decision{Rule: rule, Key: key, Limit: n, RetryAfter: time.Duration(n)}, 0, "")
		var got struct{ Rule, Key string }
		if err := json.Unmarshal(b, &got); err != nil {
			t.Errorf("rule %q, key %q: %v in %s", rule, key, err, b)
		}
		return got.Rule + "|" + got.Key
	}
	if got := f("a\x00\"", "\u2028</script>\\", 1); got != "a\x00\"|\u2028</script>\\" {
		t.Errorf("text came back as %q", got)
	}
	if got := f("\xff", "k", 2); got != "\ufffd|k" {
		t.Errorf("a rule's name that is not UTF-8 came back as %q", got)
	}
}

func TestSecondsHaveAsManyDecimalsAsTheyNeed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 1: "0.000000001", 10: "0.00000001", time.Millisecond: "0.001", 100 * time.Millisecond: "0.1",
		time.Second: "1", 2*time.Second + 1: "2.000000001", 333333334: "0.333333334", 1500 * time.Millisecond: "1.5",
		10 * time.Second: "10", weir.Never - 1: "9223372036.854775806", weir.Never: "null",
	} {
		if got := string(appendSeconds(nil, d)); got != want {
			t.Errorf("%d ns: got %s, want %s", d, got, want)
		}
	}
}

func TestTakeAllocatesLittle(t *testing.T) {
	f := newFixture(t, usual)
	body := strings.NewReader("")
	r := httptest.NewRequest(http.MethodPost, "/v1/take", io.NopCloser(body))
	const text = `{"rule":"default","key":"alice","cost":0}`
	r.ContentLength = int64(len(text))
	w := discard{http.Header{}}
	got := testing.AllocsPerRun(200, func() {
		body.Reset(text)
		f.ServeHTTP(w, r)
	})
	if got > 8 {
		t.Errorf("one take allocates %v times, want at most 8", got)
	}
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}
