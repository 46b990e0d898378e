package httplimit_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/pace"
)

// spoilt is a body that calls functions.
type spoilt struct {
	io.Reader
	read, close func()
}

func (s spoilt) Read(p []byte) (int, error) {
	s.read()
	return s.Reader.Read(p)
}

func (s spoilt) Close() error {
	s.close()
	return nil
}

func calm() {}

// spoil returns options of a Transport that calls boom in one place.
func spoil(place string, boom func()) httplimit.TransportOptions {
	read, closes, refusals := calm, calm, 1
	o := httplimit.TransportOptions{}
	rule := httplimit.Rule{Limit: "slots=concurrency 1", Key: httplimit.Everyone}
	observe := func(kind httplimit.EventKind) {
		o.Observe = func(_ *http.Request, e httplimit.TransportEvent) {
			if e.Kind == kind {
				boom()
			}
		}
	}
	base := calm
	switch place {
	case "Base":
		base = boom
	case "Key":
		o.Key = func(r *http.Request) string { boom(); return r.URL.Host }
	case "a rule's Key":
		rule.Key = func(*http.Request) string { boom(); return "all" }
	case "a rule's Cost":
		rule.Cost = func(*http.Request) int64 { boom(); return 1 }
	case "Delay":
		o.Delay = func(*http.Request) time.Duration { boom(); return 0 }
	case "Tokens":
		o.Tokens = func(*http.Request) httplimit.Tokens { boom(); return httplimit.Tokens{} }
	case "Bandwidth":
		o.Bandwidth = func(*http.Request) pace.Pacer { boom(); return nil }
	case "Observe of a wait":
		observe(httplimit.EventDelayed)
	case "Observe of a refusal":
		observe(httplimit.EventRefused)
	case "Observe of a retry":
		observe(httplimit.EventRetry)
	case "the body's Read":
		read = boom
	case "the body's Close":
		closes = boom
	}
	o.Rules = []httplimit.Rule{rule}
	o.Base = tripper(func(r *http.Request) (*http.Response, error) {
		base()
		status := 200
		if refusals > 0 {
			refusals--
			status = 429
		}
		resp := replies(r, status, "", "Retry-After: 1")
		resp.Body, resp.ContentLength = spoilt{strings.NewReader("hello"), read, closes}, 5
		return resp, nil
	})
	return o
}

func TestAPanicInATransportLeavesNothingTaken(t *testing.T) {
	for _, place := range []string{"Base", "Key", "a rule's Key", "a rule's Cost", "Delay", "Tokens", "Bandwidth", "Observe of a wait",
		"Observe of a refusal", "Observe of a retry", "the body's Read", "the body's Close"} {
		t.Run(place, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := weir.NewMemory(weir.MemoryOptions{})
				o := spoil(place, once())
				o.Engine = engine
				transport := newTransport(t, o)
				if got := recovered(func() { _, _ = ask(transport, "http://api.example") }); got != errBoom {
					t.Errorf("the caller recovers %v, want the panic itself", got)
				}
				if d, err := engine.Peek(t.Context(), mustRule(t, "slots=concurrency 1").For("all", 0)); err != nil || d.Remaining != 1 {
					t.Errorf("%d slots are free (%v), want 1", d.Remaining, err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				resp, err := transport.RoundTrip(toHost(t, ctx, "api.example"))
				if err != nil {
					t.Fatalf("the next request: %v; waiting: %+v", err, transport.Waits(1))
				}
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if stats := transport.Stats(); resp.StatusCode != 200 || err != nil || stats.Waiting != 0 {
					t.Errorf("the next request: %d, %v, %+v, want 200 and none waiting", resp.StatusCode, err, stats)
				}
			})
		})
	}
}

// The answer is discarded while its body hangs, and is closed by a timer.
func TestAPanicOfABodyThatHangsEndsNoProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := spoil("", calm)
		base, boom := o.Base, once()
		o.Base = tripper(func(r *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(r)
			if resp.StatusCode == 429 {
				resp.Body = spoilt{strings.NewReader("hello"), func() { time.Sleep(time.Second) }, boom}
			}
			return resp, err
		})
		if status, err := ask(newTransport(t, o), "http://api.example"); status != 200 || err != nil {
			t.Errorf("%d, %v, want 200 after a retry", status, err)
		}
	})
}

func TestABaseMayAnswerNonsense(t *testing.T) {
	for name, resp := range map[string]http.Response{
		"without a body":             {StatusCode: 200, Header: http.Header{}},
		"a refusal without a body":   {StatusCode: 429, Header: http.Header{"Retry-After": {"1"}}},
		"without anything":           {},
		"an unknown status":          {StatusCode: -1},
		"a length without a body":    {StatusCode: 503, ContentLength: 1 << 40},
		"a switch without a channel": {StatusCode: 101, Body: io.NopCloser(strings.NewReader(""))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := newTransport(t, httplimit.TransportOptions{Base: tripper(func(*http.Request) (*http.Response, error) {
					answer := resp
					return &answer, nil
				}), Rules: []httplimit.Rule{{Limit: "concurrency 1"}}})
				for range 2 {
					if status, err := ask(transport, "http://api.example"); status != resp.StatusCode || err != nil {
						t.Errorf("%d, %v, want the answer of the base", status, err)
					}
				}
			})
		})
	}
}
