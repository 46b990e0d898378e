package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

func TestDecisionsAreApartAndInOneCall(t *testing.T) {
	var calls atomic.Int64
	memory := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 1_700_000_000_000_000_000 }})
	a := newAPI(t, weir.Wrap(memory, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		calls.Add(1)
		return next(ctx, call)
	}), usual, "line=leaky bucket 4/s queue 2")
	for _, step := range []struct{ path, body, want string }{
		{"take", `{"decisions":[{"key":"a","cost":15},{"key":"a","cost":15},{"key":"b"},{"rule":"line","key":"a"}]}`,
			`{"allowed":true,"rule":"default","key":"a","limit":20,"remaining":5,"retry_after":0,"reset_after":1.5,"delay":0},` +
				`{"allowed":false,"rule":"default","key":"a","limit":20,"remaining":5,"retry_after":1,"reset_after":1.5,"delay":0,"refused_by":0,"cause":"count"},` +
				`{"allowed":true,"rule":"default","key":"b","limit":20,"remaining":19,"retry_after":0,"reset_after":0.1,"delay":0},` +
				`{"allowed":true,"rule":"line","key":"a","limit":3,"remaining":2,"retry_after":0,"reset_after":0.25,"delay":0}`},
		{"return", `{"decisions":[{"key":"a","cost":15}]}`, `{"allowed":true,"rule":"default","key":"a","limit":20,"remaining":20,"retry_after":0,"reset_after":0,"delay":0}`},
		{"record", `{"decisions":[{"key":"a","cost":25}]}`, `{"allowed":false,"rule":"default","key":"a","limit":20,"remaining":0,"retry_after":null,"reset_after":2.5,"delay":0,"refused_by":0,"cause":"count"}`},
		{"peek", `{"decisions":[{"key":"b","cost":2}]}`, `{"allowed":true,"rule":"default","key":"b","limit":20,"remaining":19,"retry_after":0,"reset_after":0.1,"delay":0}`},
	} {
		before := calls.Load()
		w := post(a, "/v1/"+step.path, step.body)
		if want := `{"decisions":[` + step.want + "]}\n"; w.Code != http.StatusOK || w.Body.String() != want {
			t.Errorf("%s %s: got %d %s want %s", step.path, step.body, w.Code, w.Body, want)
		}
		if n := calls.Load() - before; n != 1 {
			t.Errorf("%s: %d calls of the engine, want 1", step.path, n)
		}
	}
}

func TestDecisionsThatFailAreProblemsInTheirPlace(t *testing.T) {
	engine := weir.Wrap(weir.NewMemory(weir.MemoryOptions{}), func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		answer, err := next(ctx, call)
		if call.Op == weir.OpEach {
			call.Each.Results[1] = weir.Result{Err: errors.New("away")}
		}
		return answer, err
	})
	w := post(newAPI(t, engine, usual), "/v1/take", `{"decisions":[{"key":"a"},{"key":"b"},{"key":"c"}]}`)
	want := `{"type":"about:blank","title":"Service Unavailable","status":503,"counted":"unknown","detail":"the engine could not decide, and admitted nothing; ask again, though it may have counted this request"}`
	if got := w.Body.String(); w.Code != http.StatusOK || strings.Count(got, `"allowed":true`) != 2 || !strings.Contains(got, "},"+want+",{") {
		t.Errorf("got %d %s", w.Code, got)
	}
}

func TestDecisionsAreReadStrictly(t *testing.T) {
	a := newAPI(t, weir.NewMemory(weir.MemoryOptions{}), usual)
	for body, want := range map[string]string{
		`{"decisions":[]}`: "decisions is empty", `{"decisions":[{"key":"a"}],"key":"b"}`: "decisions excludes rule, key and cost",
		`{"decisions":[{"key":"a"}],"requests":[{"key":"b"}]}`: "decisions excludes requests", `{"requests":[{"key":"a"}],"decisions":[{"key":"b"}]}`: "decisions excludes requests",
		`{"decisions":[{"key":"a"},{"key":"a","cost":-1}]}`: "decisions[1].cost is -1, below 0", `{"decisions":[` + strings.Repeat(`{"key":"a"},`, 128) + `{"key":"a"}]}`: "decisions has more than 128 elements",
	} {
		if w := post(a, "/v1/take", body); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%.60s: got %d %s, want %s", body, w.Code, w.Body, want)
		}
	}
	if w := post(a, "/v1/reset", `{"decisions":[{"key":"a"}]}`); w.Code != http.StatusBadRequest {
		t.Errorf("a reset of decisions got %d %s", w.Code, w.Body)
	}
}

func BenchmarkDecisions(b *testing.B) {
	rule, err := weir.ParseRule("default=token bucket 1000000/s burst 1000000000")
	if err != nil {
		b.Fatal(err)
	}
	a := newAPIWith(b, decide.Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Rules: []*weir.Rule{rule}})
	var items []string
	for i := range 100 {
		items = append(items, fmt.Sprintf(`{"key":"user:%d"}`, i))
	}
	body := `{"decisions":[` + strings.Join(items, ",") + "]}"
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/v1/take", strings.NewReader(body))
		w := httptest.NewRecorder()
		if a.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/decision")
}
