package httplimit_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/httplimit/httplimittest"
	"github.com/weirflow/weir/internal/layertest"
)

// recordedLog keeps the lines of a logger.
type recordedLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *recordedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

func (l *recordedLog) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *recordedLog) count(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// Each row is a mistake, with a request that shows it, and the line that is
// written once.
func TestMistakesAreLoggedOnce(t *testing.T) {
	trusting := httplimit.ClientOptions{Trusted: []string{"10.0.0.1"}}
	tests := []struct {
		name    string
		client  httplimit.ClientOptions
		rule    httplimit.Rule
		peer    func(i int) string
		headers []string
		want    string
	}{
		{"header of an untrusted proxy", httplimit.ClientOptions{}, httplimit.Rule{}, manyPeers, []string{"X-Forwarded-For", "192.0.2.1"}, "no proxy is trusted"},
		{"trusted proxy without the header", trusting, httplimit.Rule{}, proxyAndOthers, nil, "does not tell the address"},
		{"trusted proxy with garbage", trusting, httplimit.Rule{}, proxyAndOthers, []string{"X-Forwarded-For", "unknown"}, "no list of addresses"},
		{"all from one address", httplimit.ClientOptions{}, httplimit.Rule{}, func(int) string { return alice }, nil, "came from one address"},
		{"address with a port", httplimit.ClientOptions{}, httplimit.Rule{Key: func(r *http.Request) string { return r.RemoteAddr }}, manyPeers, nil, "address with a port"},
		{"path value around the mux", httplimit.ClientOptions{}, httplimit.Rule{Key: httplimit.PathValue("id")}, manyPeers, nil, "no request so far had a key"},
		{"nothing wrong", httplimit.ClientOptions{}, httplimit.Rule{}, manyPeers, nil, ""},
		{"nothing wrong behind a proxy", trusting, httplimit.Rule{}, func(int) string { return "10.0.0.1:1" }, []string{"X-Forwarded-For", "varied"}, ""},
	}
	for _, tt := range tests {
		var log recordedLog
		tt.client.Logger = log.logger()
		client, err := httplimit.NewClient(tt.client)
		if err != nil {
			t.Fatal(err)
		}
		tt.rule.Limit = "1000000/s"
		h := wrap(t, httplimit.Options{Client: client, Logger: log.logger(), Rules: []httplimit.Rule{tt.rule}}, ok)
		for i := range 2500 {
			headers := tt.headers
			if len(headers) > 0 && headers[1] == "varied" {
				headers = []string{headers[0], fmt.Sprintf("192.0.2.%d", i%100)}
			}
			get(h, tt.peer(i), headers...)
		}
		want := 1
		if tt.want == "" {
			want = 0
		}
		if len(log.lines) != want || log.count(tt.want) != want {
			t.Errorf("%s: logged %q, want one line with %q", tt.name, log.lines, tt.want)
		}
		if want == 1 && log.count("/http.md#") != 1 {
			t.Errorf("%s: logged %q, want where to read on", tt.name, log.lines)
		}
	}
}

func manyPeers(i int) string { return fmt.Sprintf("192.0.2.%d:80", i%100) }

func proxyAndOthers(i int) string { return []string{"10.0.0.1:1", "192.0.2.7:80"}[i%2] }

func TestARequestCountedTwiceIsLogged(t *testing.T) {
	var log recordedLog
	engine := weir.NewMemory(weir.MemoryOptions{})
	options := httplimit.Options{Engine: engine, Logger: log.logger(), Rules: []httplimit.Rule{{Limit: "client=1000/s"}}}
	inner := wrap(t, options, ok)
	for range 10 {
		get(wrap(t, options, inner), alice)
	}
	if got := log.count("costs twice"); got != 1 {
		t.Errorf("%d lines about costs, want 1: %q", got, log.lines)
	}
	log = recordedLog{}
	elsewhere := options
	elsewhere.Rules = []httplimit.Rule{{Limit: "client=1000/s", Key: httplimit.Everyone}}
	get(wrap(t, elsewhere, wrap(t, options, ok)), bob)
	if got := log.count("costs twice"); got != 0 {
		t.Errorf("%d lines for another key, want none: %q", got, log.lines)
	}
	observed := options
	observed.Engine = layertest.Put(engine, 1)
	get(wrap(t, observed, wrap(t, options, ok)), bob)
	if got := log.count("costs twice"); got != 1 {
		t.Errorf("%d lines about costs below a function around the engine, want 1: %q", got, log.lines)
	}
	log = recordedLog{}
	options.Rules = []httplimit.Rule{{Limit: "other=1000/s"}}
	get(wrap(t, options, wrap(t, elsewhere, ok)), bob)
	if got := log.count("costs twice"); got != 0 {
		t.Errorf("%d lines for another rule, want none: %q", got, log.lines)
	}
}

// A handler that outlives its request leaves no mark behind.
func TestMarksOfRequestsAreRemoved(t *testing.T) {
	options := httplimit.Options{Logger: silent, Rules: []httplimit.Rule{{Limit: "client=1000/s"}}}
	goOn, inside, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	inner := wrap(t, options, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(inside)
		<-goOn
	}))
	outer := wrap(t, options, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		go func() {
			defer close(done)
			inner.ServeHTTP(httptest.NewRecorder(), r)
		}()
		<-inside
	}))
	r := request("GET", alice)
	answer(outer, r)
	close(goOn)
	<-done
	if httplimit.IsMarked(r) {
		t.Error("the mark of a request is kept after its handlers have returned")
	}
}

func TestAMiddlewareMadeWithinARequestIsLogged(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		httplimit.ForgetMadeInRequest()
		var log recordedLog
		server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			wrap(t, httplimit.Options{Logger: log.logger(), Rules: []httplimit.Rule{{Limit: "client=1/s"}}}, ok).ServeHTTP(w, r)
		}), http2)
		for range 5 {
			fetch(t, server, "GET")
		}
		if got := log.count("made within a request"); got != 1 {
			t.Errorf("http2 %v: %d lines, want 1: %q", http2, got, log.lines)
		}
	}
}

func TestPlansThatAreMadeAnewAreBounded(t *testing.T) {
	var log recordedLog
	engine := httplimittest.NewClock(start).Engine()
	h := wrap(t, httplimit.Options{Engine: engine, Logger: log.logger(), Rules: []httplimit.Rule{{
		Plan: func(*http.Request) *weir.Rule {
			rule, _ := weir.ParseRule("plan=3000/h")
			return rule
		},
	}}}, ok)
	for i := range 5000 {
		if w := get(h, alice); (w.Code == 200) != (i < 3000) {
			t.Fatalf("request %d: status %d", i+1, w.Code)
		}
	}
	if got := log.count("very many rules"); got != 1 {
		t.Errorf("%d lines, want 1: %q", got, log.lines)
	}
}
