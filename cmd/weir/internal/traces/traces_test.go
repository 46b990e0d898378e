package traces_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/traces"
	"github.com/weirflow/weir/layer"
)

// collected is what a collector gets.
type collected struct {
	ResourceSpans []struct {
		ScopeSpans []struct {
			Spans []struct{ TraceID, SpanID, ParentSpanID, Name, StartTimeUnixNano, EndTimeUnixNano string }
		}
	}
}

const (
	trace = "0af7651916cd43dd8448eb211c80319c"
	spanA = "b7ad6b7169203331"
)

func TestRequestsOfSampledTracesAreSpans(t *testing.T) {
	bodies := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- r.URL.Path + " " + string(body)
	}))
	defer collector.Close()
	tracer := traces.New(collector.URL, func(string, ...any) {})
	rule, err := weir.ParseRule("login=1/h")
	if err != nil {
		t.Fatal(err)
	}
	engine, err := layer.Observe(weir.NewMemory(weir.MemoryOptions{}), layer.ObserveOptions{Decided: tracer.Decided})
	if err != nil {
		t.Fatal(err)
	}
	handler := tracer.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = engine.Take(r.Context(), rule.For("alice", 1))
	}), func(path string) bool { return path == "/v1/take" })
	for _, parent := range []string{"", "00-" + trace + "-" + spanA + "-00", "00-" + strings.Repeat("0", 32) + "-" + spanA + "-01", "00-" + strings.ToUpper(trace) + "-" + spanA + "-01",
		"00-" + trace + "-" + spanA + "-01-x", "ff-" + trace + "-" + spanA + "-01", "00-" + trace + "-" + spanA + "-zz", "00-" + trace + "-" + spanA + "-01"} {
		r := httptest.NewRequest(http.MethodPost, "/v1/take", nil)
		if parent != "" {
			r.Header.Set("traceparent", parent)
		}
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tracer.Run(ended)
	body, ok := strings.CutPrefix(<-bodies, "/v1/traces ")
	var got collected
	if err := json.Unmarshal([]byte(body), &got); err != nil || !ok {
		t.Fatalf("got %v: %s", err, body)
	}
	spans := got.ResourceSpans[0].ScopeSpans[0].Spans
	if len(spans) != 2 || spans[1].Name != "POST /v1/take" || spans[1].TraceID != trace || spans[1].ParentSpanID != spanA ||
		spans[0].Name != "weir take" || spans[0].TraceID != trace || spans[0].ParentSpanID != spans[1].SpanID || len(spans[0].SpanID) != 16 || spans[0].EndTimeUnixNano < spans[0].StartTimeUnixNano {
		t.Errorf("got the spans %+v, want a request of the caller, and its decision", spans)
	}
	if strings.Contains(body, "alice") || !strings.Contains(body, `"refused"`) {
		t.Errorf("got a key, or no refusal: %s", body)
	}
}

// A collector may take connections and never answer. Spans may be on their way to it, and others wait.
func TestACollectorThatHangsDoesNotHoldUpTheEnd(t *testing.T) {
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hole.Close() }()
	var warned atomic.Int64
	tracer := traces.New("http://"+hole.Addr().String(), func(string, ...any) { warned.Add(1) })
	handler := tracer.HTTP(http.NotFoundHandler(), func(string) bool { return false })
	ask := func() {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("traceparent", "00-"+trace+"-"+spanA+"-01")
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	ask()
	go func() {
		defer close(ended)
		tracer.Run(ctx)
	}()
	if _, err := hole.Accept(); err != nil { // the first spans are on their way
		t.Fatal(err)
	}
	ask()
	cancel()
	began := time.Now()
	<-ended
	if took := time.Since(began); took > 3*time.Second { // 0.5 s on a machine that is not busy
		t.Errorf("the end took %v", took)
	}
	if warned.Load() == 0 {
		t.Error("nothing says that spans are lost")
	}
}

func TestSpansThatNobodyTakesAreBounded(t *testing.T) {
	collector := httptest.NewServer(http.NotFoundHandler())
	defer collector.Close()
	tracer := traces.New(collector.URL, func(string, ...any) {})
	handler := tracer.HTTP(http.NotFoundHandler(), func(string) bool { return false })
	for range 10_000 {
		r := httptest.NewRequest(http.MethodGet, "/secret", nil)
		r.Header.Set("traceparent", "00-"+trace+"-"+spanA+"-01")
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tracer.Run(ended) // ends, though the collector refuses
}
