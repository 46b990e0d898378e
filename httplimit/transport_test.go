package httplimit_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/layer"
)

// tripper is a RoundTripper made of a function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// replies returns an answer with a body and header fields as "Name: value".
func replies(r *http.Request, status int, body string, fields ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r}
	if body == "" {
		resp.Body = http.NoBody
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		resp.Header.Add(name, value)
	}
	return resp
}

// always answers every request alike.
func always(status int, fields ...string) tripper {
	return func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
		}
		return replies(r, status, "", fields...), nil
	}
}

// toHost returns a GET to a host.
func toHost(t testing.TB, ctx context.Context, host string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", "http://"+host+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHostIsOneKeyHoweverItIsWritten(t *testing.T) {
	for raw, want := range map[string]string{
		"http://example.com/":                  "example.com",
		"http://EXAMPLE.com:80/":               "example.com",
		"https://example.com.:443/x":           "example.com",
		"http://example.com:443/":              "example.com:443",
		"http://example.com:8080/":             "example.com:8080",
		"http://example.com:/":                 "example.com",
		"http://user:secret@example.com/":      "example.com",
		"http://192.0.2.1:80/":                 "192.0.2.1",
		"http://[2001:DB8::1]:80/":             "[2001:db8::1]",
		"http://[2001:db8::1]/":                "[2001:db8::1]",
		"http://[2001:db8::1]:8080/":           "[2001:db8::1]:8080",
		"http://Bücher.example/":               "xn--bcher-kva.example",
		"http://xn--bcher-kva.example/":        "xn--bcher-kva.example",
		"http://例え.テスト/":                       "xn--r8jz45g.xn--zckzah",
		"http://☃.net/":                        "xn--n3h.net",
		"http://ليهمابتكلموشعربي؟.example:80/": "xn--egbpdaj6bu4bxfgehfvwxn.example",
		"http://Pročprostěnemluvíčesky.cz/":    "xn--proprostnemluvesky-uyb24dma41a.cz",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := httplimit.Host(&http.Request{URL: u, Host: "another.example"}); got != want {
			t.Errorf("Host of %s is %q, want %q", raw, got, want)
		}
	}
}

func TestCredentialsDoNotShowInKeys(t *testing.T) {
	r := toHost(t, t.Context(), "api.example")
	anonymous := httplimit.Credential(r)
	r.Header.Set("Authorization", "Bearer secret")
	first := httplimit.Credential(r)
	r.Header.Set("Authorization", "Bearer other")
	if second := httplimit.Credential(r); anonymous == "" || first == anonymous || first == second || strings.Contains(first, "secret") {
		t.Errorf("keys %q, %q, %q, want three that differ and do not show the credential", anonymous, first, second)
	}
}

// closes counts how often a body was closed.
type closes struct {
	io.Reader
	n atomic.Int32
}

func (c *closes) Close() error { c.n.Add(1); return nil }

// An http.RoundTripper must close the body, also when it sends nothing.
func TestTheBodyOfARequestThatIsNotSentIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		deny := httplimit.TransportOptions{Base: always(200), Rules: []httplimit.Rule{{Limit: "client=2/s", Cost: func(*http.Request) int64 { return 3 }}}}
		paused := newTransport(t, httplimit.TransportOptions{Base: always(429, "Retry-After: 3000")})
		if status, err := ask(paused, "http://api.example"); status != 429 || err != nil {
			t.Fatal(status, err)
		}
		full := newTransport(t, httplimit.TransportOptions{Base: always(200, `RateLimit: "client=a";r=0;t=60`), MaxKeys: 1})
		if _, err := ask(full, "http://other.example"); err != nil {
			t.Fatal(err)
		}
		for name, tt := range map[string]struct {
			transport *httplimit.Transport
			ctx       context.Context
			want      error
		}{
			"a context that has ended":         {newTransport(t, httplimit.TransportOptions{Base: always(200)}), ended, context.Canceled},
			"a cost that can never fit":        {newTransport(t, deny), t.Context(), weir.ErrNever},
			"a pause that is too long":         {paused, t.Context(), weir.ErrWait},
			"a deadline before the pause":      {paused, soon, weir.ErrWait},
			"no room for another key":          {full, t.Context(), weir.ErrNoRoom},
			"a cost that no engine can decide": {newTransport(t, httplimit.TransportOptions{Base: always(200), Rules: []httplimit.Rule{{Limit: "client=2/s", Cost: func(*http.Request) int64 { return -1 }}}}), t.Context(), weir.ErrRequest},
		} {
			body := &closes{Reader: strings.NewReader("x")}
			r := toHost(t, tt.ctx, "api.example")
			r.Method, r.Body = "POST", body
			resp, err := tt.transport.RoundTrip(r)
			if resp != nil || !errors.Is(err, tt.want) || body.n.Load() != 1 {
				t.Errorf("%s: %v, %v and the body was closed %d times, want %v and once", name, resp, err, body.n.Load(), tt.want)
			}
		}
	})
}

func TestAFailingEngineCanAdmit(t *testing.T) {
	transport := newTransport(t, httplimit.TransportOptions{Base: always(200), Guard: layer.GuardOptions{OnFailure: layer.Allow},
		Engine: broken(weir.NewMemory(weir.MemoryOptions{}), errBoom), Rules: []httplimit.Rule{{Limit: "client=2/s"}}})
	if status, err := ask(transport, "http://api.example"); status != 200 || err != nil {
		t.Errorf("%d, %v, want 200", status, err)
	}
}

func TestARequestWaitsThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		away := remote(weir.NewMemory(weir.MemoryOptions{}), func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
			if time.Since(began) < time.Minute {
				return weir.Answer{}, errBoom
			}
			return next(ctx, c)
		})
		transport := newTransport(t, httplimit.TransportOptions{Base: always(200), Engine: away, Rules: []httplimit.Rule{{Limit: "client=2/s"}}})
		if status, err := ask(transport, "http://api.example"); status != 200 || err != nil || time.Since(began) < time.Minute {
			t.Errorf("%d, %v after %v, want 200 when the engine is back", status, err, time.Since(began))
		}
	})
}

func TestTheRequestStaysAsItIsAndTheAnswerIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		transport := newTransport(t, httplimit.TransportOptions{Base: tripper(func(r *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return replies(r, 429, "slow down", "Retry-After: 1"), nil
			}
			return replies(r, 200, "hello", "X-Other: y"), nil
		})})
		r := toHost(t, t.Context(), "api.example")
		before := r.Clone(r.Context())
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 200 || string(text) != "hello" || resp.Header.Get("X-Other") != "y" || resp.Request != r {
			t.Errorf("%d %q %v of request %p, want the answer of the base to %p", resp.StatusCode, text, resp.Header, resp.Request, r)
		}
		if r.URL.String() != before.URL.String() || len(r.Header) != 0 || r.Body != nil || r.Host != before.Host {
			t.Errorf("the request is now %+v, want %+v", r, before)
		}
	})
}

// waitsFor reports how long a second request waits for the only slot, after the first was answered.
func waitsFor(t *testing.T, base http.RoundTripper, after func(resp *http.Response, cancel func())) time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	transport := newTransport(t, httplimit.TransportOptions{Base: base, Rules: []httplimit.Rule{{Limit: "client=concurrency 1"}}})
	resp, err := transport.RoundTrip(toHost(t, ctx, "api.example"))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	defer time.AfterFunc(10*time.Second, func() { after(resp, cancel) }).Stop()
	patient, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	second, err := transport.RoundTrip(toHost(t, patient, "api.example"))
	if err != nil {
		return -1
	}
	_ = second.Body.Close()
	return time.Since(start)
}

func TestASlotIsHeldUntilTheBodyEnds(t *testing.T) {
	serves := tripper(func(r *http.Request) (*http.Response, error) { return replies(r, 200, "hello"), nil })
	for name, tt := range map[string]struct {
		base  http.RoundTripper
		after func(*http.Response, func())
		want  time.Duration
	}{
		"closed":              {serves, func(r *http.Response, _ func()) { _ = r.Body.Close() }, 10 * time.Second},
		"closed twice":        {serves, func(r *http.Response, _ func()) { _ = r.Body.Close(); _ = r.Body.Close() }, 10 * time.Second},
		"read to its end":     {serves, func(r *http.Response, _ func()) { _, _ = io.ReadAll(r.Body) }, 10 * time.Second},
		"read in part":        {serves, func(r *http.Response, _ func()) { _, _ = r.Body.Read(make([]byte, 2)) }, -1},
		"the context ends":    {serves, func(_ *http.Response, cancel func()) { cancel() }, 10 * time.Second},
		"a body of no length": {always(204), func(*http.Response, func()) {}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := waitsFor(t, tt.base, tt.after); got != tt.want {
					t.Errorf("the next request waits for %v, want %v", got, tt.want)
				}
			})
		})
	}
}

func TestASwitchedConnectionCanBeWritten(t *testing.T) {
	near, far := io.Pipe()
	base := tripper(func(r *http.Request) (*http.Response, error) {
		resp := replies(r, http.StatusSwitchingProtocols, "")
		resp.Body = struct {
			io.ReadCloser
			io.Writer
		}{io.NopCloser(strings.NewReader("")), far}
		return resp, nil
	})
	resp, err := newTransport(t, httplimit.TransportOptions{Base: base}).RoundTrip(toHost(t, t.Context(), "api.example"))
	if err != nil {
		t.Fatal(err)
	}
	connection, writes := resp.Body.(io.ReadWriteCloser)
	if !writes {
		t.Fatalf("the body is a %T, want an io.ReadWriteCloser", resp.Body)
	}
	go func() { _, _ = connection.Write([]byte("hi")); _ = far.Close() }()
	if got, err := io.ReadAll(near); string(got) != "hi" || err != nil {
		t.Errorf("the other side gets %q, %v, want hi", got, err)
	}
}

// idle counts the calls of CloseIdleConnections.
type idle struct {
	tripper
	n int
}

func (i *idle) CloseIdleConnections() { i.n++ }

func TestIdleConnectionsOfTheBaseAreClosed(t *testing.T) {
	base := &idle{tripper: always(200)}
	client := &http.Client{Transport: newTransport(t, httplimit.TransportOptions{Base: base})}
	client.CloseIdleConnections()
	newTransport(t, httplimit.TransportOptions{Base: always(200)}).CloseIdleConnections() // it has none
	if base.n != 1 {
		t.Errorf("the base was asked %d times, want once", base.n)
	}
}

func TestAnErrorOfTheBaseIsReturnedAndEndsTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("connection refused")
		for _, base := range []tripper{
			func(*http.Request) (*http.Response, error) { return nil, refused },
			func(*http.Request) (*http.Response, error) { return nil, nil },
		} {
			transport := newTransport(t, httplimit.TransportOptions{Base: base, Rules: []httplimit.Rule{{Limit: "client=concurrency 1"}}})
			for range 3 {
				if resp, err := transport.RoundTrip(toHost(t, t.Context(), "api.example")); resp != nil || err == nil {
					t.Errorf("%v, %v, want an error", resp, err)
				}
			}
		}
	})
}

func TestARedirectObeysTheLimitsOfEachHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []string
		start := time.Now()
		base := tripper(func(r *http.Request) (*http.Response, error) {
			at = append(at, r.URL.Host+" "+time.Since(start).String())
			if r.URL.Host == "old.example" {
				return replies(r, 302, "", "Location: http://new.example/", `RateLimit: "a";r=5;t=60`), nil
			}
			return replies(r, 200, "", `RateLimit: "a";r=0;t=60`), nil
		})
		client := &http.Client{Transport: newTransport(t, httplimit.TransportOptions{Base: base})}
		for range 2 {
			resp, err := client.Get("http://old.example/")
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		want := "old.example 0s new.example 0s old.example 0s new.example 1m0s"
		if got := strings.Join(at, " "); got != want {
			t.Errorf("requests %s, want %s", got, want)
		}
	})
}

// The net/http client and server send informational answers, empty answers and HEAD over real connections.
func TestATransportServesARealClient(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("RateLimit", `"a";r=50;t=30`)
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()
	transport := newTransport(t, httplimit.TransportOptions{Rules: []httplimit.Rule{{Limit: "client=1000/s and concurrency 2"}}})
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	for range 5 {
		for _, method := range []string{"HEAD", "GET"} {
			r, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if method == "HEAD" {
				continue // its body is empty, and need not be closed
			}
			if text, err := io.ReadAll(resp.Body); resp.StatusCode != 200 || string(text) != "hello" || err != nil {
				t.Errorf("%d %q %v, want hello", resp.StatusCode, text, err)
			}
		}
	}
	client.CloseIdleConnections()
}
