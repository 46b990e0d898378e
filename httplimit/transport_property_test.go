package httplimit_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/internal/randtest"
)

// server answers requests in memory, with a delay on the way in each direction.
type server struct {
	handler http.Handler
	oneWay  func() time.Duration

	mu       sync.Mutex
	requests int
	refused  []time.Time
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := s.travel(r.Context()); err != nil {
		return nil, err
	}
	arrived := time.Now()
	w := httptest.NewRecorder()
	inner := r.Clone(r.Context())
	inner.RemoteAddr = "192.0.2.1:1234"
	s.handler.ServeHTTP(w, inner)
	s.mu.Lock()
	s.requests++
	if w.Code == http.StatusTooManyRequests {
		s.refused = append(s.refused, arrived)
	}
	s.mu.Unlock()
	if r.Body != nil {
		_ = r.Body.Close()
	}
	if err := s.travel(r.Context()); err != nil {
		return nil, err
	}
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

func (s *server) travel(ctx context.Context) error {
	if s.oneWay == nil {
		return nil
	}
	select {
	case <-time.After(s.oneWay()):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func newTransport(t testing.TB, o httplimit.TransportOptions) *httplimit.Transport {
	t.Helper()
	o.Engine = layertest.Around(o.Engine)
	transport, err := httplimit.NewTransport(o)
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

// ask sends a GET and reads the answer to its end.
func ask(transport http.RoundTripper, url string) (status int, err error) {
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// epochReset rewrites the reset of the legacy fields, and Retry-After, as instants of a server that cuts off
// fractions.
func epochReset(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := httptest.NewRecorder()
		next.ServeHTTP(inner, r)
		now := time.Now()
		w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
		for name, values := range inner.Header() {
			w.Header()[name] = values
		}
		if reset, err := strconv.Atoi(inner.Header().Get("X-Ratelimit-Reset")); err == nil {
			w.Header().Set("X-Ratelimit-Reset", strconv.FormatInt(now.Unix()+int64(reset), 10))
		}
		w.WriteHeader(inner.Code)
	})
}

// withoutRemainder announces only the policy.
func withoutRemainder(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := httptest.NewRecorder()
		next.ServeHTTP(inner, r)
		w.Header()["Ratelimit-Policy"] = inner.Header()["Ratelimit-Policy"]
		w.WriteHeader(inner.Code)
	})
}

func TestNoRequestAfterAnAnnouncingAnswerIsRefused(t *testing.T) {
	formats := map[string]httplimit.Headers{
		"draft 11": httplimit.Draft11, "draft 07": httplimit.Draft07, "draft 06": httplimit.Draft06,
		"legacy": httplimit.Legacy, "legacy epoch": httplimit.Legacy, "policy only": httplimit.Draft11,
	}
	for name, headers := range formats {
		for _, limit := range []string{"sliding log 100/10s", "token bucket 10/s burst 100", "token bucket 10/s burst 5", "fixed window 100/10s", "sliding window 100/10s"} {
			if name == "policy only" && limit == "sliding window 100/10s" {
				continue // it weighs its previous window, so a unit comes back in up to two
			}
			for _, workers := range []int{1, 9, 120} {
				for _, pause := range []time.Duration{0, 2 * time.Second} {
					t.Run(fmt.Sprintf("%s/%s/%d workers/pauses up to %v", name, limit, workers, pause), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { obeys(t, name, headers, limit, workers, pause) })
					})
				}
			}
		}
	}
}

// obeys sends 360 requests from some workers, at random times and with random delays on the way.
func obeys(t *testing.T, name string, headers httplimit.Headers, limit string, workers int, pause time.Duration) {
	random := randtest.New(randtest.Seed(t))
	upTo := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
	time.Sleep(3*365*24*time.Hour + upTo(20*time.Second)) // an instant above 1e9 s, at any phase of a window
	h := wrap(t, httplimit.Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Headers: headers, Rules: []httplimit.Rule{{Limit: "client=" + limit}}}, ok)
	switch name {
	case "legacy epoch":
		h = epochReset(h)
	case "policy only":
		h = withoutRemainder(h)
	}
	s := &server{handler: h, oneWay: func() time.Duration { return upTo(300 * time.Millisecond) }}
	transport := newTransport(t, httplimit.TransportOptions{Base: s})
	start := time.Now()
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range 360 / workers {
				time.Sleep(upTo(pause + 1))
				if status, err := ask(transport, "http://api.example/"); err != nil || status != 200 {
					t.Errorf("a request got %d, %v, want 200", status, err)
				}
			}
		})
	}
	all.Wait()
	if len(s.refused) > 0 {
		t.Errorf("the server refused %d of %d requests, the first after %v, want none", len(s.refused), s.requests, s.refused[0].Sub(start))
	}
	t.Logf("%d requests in %v; %+v", s.requests, time.Since(start), transport.Stats())
}

// Other clients use half of the quota, so what remains is less than the client's own requests explain.
func TestAQuotaThatOthersUseTooIsSeldomOverdrawn(t *testing.T) {
	for _, limit := range []string{"sliding log 100/10s", "token bucket 10/s burst 100", "fixed window 100/10s"} {
		t.Run(limit, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(1, 2))
				h := wrap(t, httplimit.Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Rules: []httplimit.Rule{{Limit: "client=" + limit}}}, ok)
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					for ctx.Err() == nil {
						time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
						h.ServeHTTP(httptest.NewRecorder(), request("GET", "192.0.2.1:9"))
					}
				}()
				s := &server{handler: h, oneWay: func() time.Duration { return 20 * time.Millisecond }}
				transport := newTransport(t, httplimit.TransportOptions{Base: s})
				start := time.Now()
				asking(t, transport, 300, oneHost)
				cancel()
				if took := time.Since(start); len(s.refused) > 6 || took > 90*time.Second {
					t.Errorf("300 requests beside others took %v, and %d were refused; want 6 at most in 90s", took, len(s.refused))
				}
				t.Logf("%v, %d refused, %+v", time.Since(start), len(s.refused), transport.Stats())
				time.Sleep(time.Second) // the other client ends
			})
		})
	}
}
