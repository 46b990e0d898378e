// Package middleware_test measures middlewares for net/http beside their rivals: one
// admitted request, from one of many clients, to a handler that does nothing.
package middleware_test

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/didip/tollbooth/v7"
	tollboothlimiter "github.com/didip/tollbooth/v7/limiter"
	"github.com/go-chi/httprate"
	sethvargo "github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	"github.com/weirflow/weir/httplimit"
)

// plenty is a limit that no run reaches.
const plenty = 1_000_000_000

const clients = 4096

var middlewares = []struct {
	name string
	make func() (func(http.Handler) http.Handler, error)
}{
	{"bare", func() (func(http.Handler) http.Handler, error) {
		return func(next http.Handler) http.Handler { return next }, nil
	}},
	{"weir/none", weir(httplimit.NoHeaders)},
	{"weir/draft11", weir(httplimit.Draft11)},
	{"weir/legacy", weir(httplimit.Legacy)},
	{"httprate", func() (func(http.Handler) http.Handler, error) {
		return httprate.LimitBy(plenty, time.Hour, byAddress), nil
	}},
	{"sethvargo", func() (func(http.Handler) http.Handler, error) {
		store, err := memorystore.New(&memorystore.Config{Tokens: plenty, Interval: time.Hour})
		if err != nil {
			return nil, err
		}
		m, err := sethvargo.NewMiddleware(store, sethvargo.IPKeyFunc())
		if err != nil {
			return nil, err
		}
		return m.Handle, nil
	}},
	{"throttled", func() (func(http.Handler) http.Handler, error) {
		store, err := memstore.NewCtx(0)
		if err != nil {
			return nil, err
		}
		limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerHour(plenty), MaxBurst: plenty - 1})
		m := throttled.HTTPRateLimiterCtx{RateLimiter: limiter, VaryBy: &throttled.VaryBy{RemoteAddr: true}}
		return m.RateLimit, err
	}},
	{"tollbooth", func() (func(http.Handler) http.Handler, error) {
		limiter := tollbooth.NewLimiter(plenty, &tollboothlimiter.ExpirableOptions{DefaultExpirationTTL: time.Hour}).SetIPLookups([]string{"RemoteAddr"})
		return func(next http.Handler) http.Handler { return tollbooth.LimitHandler(limiter, next) }, nil
	}},
	{"ulule", func() (func(http.Handler) http.Handler, error) {
		limiter := ulule.New(ululememory.NewStore(), ulule.Rate{Period: time.Hour, Limit: plenty})
		return stdlib.NewMiddleware(limiter).Handler, nil
	}},
}

func weir(headers httplimit.Headers) func() (func(http.Handler) http.Handler, error) {
	return func() (func(http.Handler) http.Handler, error) {
		return httplimit.New(httplimit.Options{
			Headers: headers,
			Rules:   []httplimit.Rule{{Limit: fmt.Sprintf("%d/h", plenty)}},
			Logger:  slog.New(slog.DiscardHandler),
		})
	}
}

// sink is a writer that keeps only the status.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

func BenchmarkAdmitted(b *testing.B) {
	requests := make([]*http.Request, clients)
	for i := range requests {
		requests[i] = httptest.NewRequest("GET", "/", nil)
		requests[i].RemoteAddr = fmt.Sprintf("192.0.%d.%d:1234", i/256, i%256)
	}
	for _, m := range middlewares {
		b.Run(m.name, func(b *testing.B) { measure(b, m.make, requests) })
	}
}

func measure(b *testing.B, make func() (func(http.Handler) http.Handler, error), requests []*http.Request) {
	reached := 0
	limited, err := make()
	if err != nil {
		b.Fatal(err)
	}
	h := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	w, sent := &sink{header: http.Header{}}, 0
	send := func() {
		clear(w.header)
		h.ServeHTTP(w, requests[sent%len(requests)])
		sent++
	}
	for range requests {
		send() // each client is known, and first requests are over
	}
	b.ReportAllocs()
	for b.Loop() {
		send()
	}
	if reached != sent || w.status != 0 {
		b.Fatalf("%d of %d requests were admitted (status %d), want all", reached, sent, w.status)
	}
}

// byAddress returns the client's address without the port, as httprate does.
func byAddress(r *http.Request) (string, error) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return host, err
}
