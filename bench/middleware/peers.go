package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
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

// middleware wraps a handler.
type middleware = func(http.Handler) http.Handler

// peer makes a middleware that admits a number of requests an hour from each client address. tollbooth knows only
// seconds, so it admits them each second.
type peer struct {
	name   string
	fields []string // that it sets on answers to admitted requests
	make   func(limit int) (middleware, error)
}

// The peers that are compared with one another.
const (
	bareHandler = "bare handler"
	weirNone    = "Weir, no fields"
	weirDraft11 = "Weir, draft 11"
	weirLegacy  = "Weir, X-RateLimit"
)

var (
	xRateLimit = []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}
	draft11    = []string{"Ratelimit", "Ratelimit-Policy"}
	ofDrafts06 = []string{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"}
)

var peers = []peer{
	{bareHandler, nil, func(int) (middleware, error) {
		return func(next http.Handler) http.Handler { return next }, nil
	}},
	{weirNone, nil, weir(httplimit.NoHeaders)},
	{weirDraft11, draft11, weir(httplimit.Draft11)},
	{weirLegacy, xRateLimit, weir(httplimit.Legacy)},
	{"httprate", xRateLimit, func(limit int) (middleware, error) {
		return httprate.LimitBy(limit, time.Hour, byAddress), nil
	}},
	{"sethvargo", xRateLimit, func(limit int) (middleware, error) {
		store, err := memorystore.New(&memorystore.Config{Tokens: uint64(limit), Interval: time.Hour})
		if err != nil {
			return nil, err
		}
		m, err := sethvargo.NewMiddleware(store, sethvargo.IPKeyFunc())
		if err != nil {
			return nil, err
		}
		return m.Handle, nil
	}},
	{"throttled", xRateLimit, func(limit int) (middleware, error) {
		store, err := memstore.NewCtx(0)
		if err != nil {
			return nil, err
		}
		limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerHour(limit), MaxBurst: limit - 1})
		m := throttled.HTTPRateLimiterCtx{RateLimiter: limiter, VaryBy: &throttled.VaryBy{RemoteAddr: true}}
		return m.RateLimit, err
	}},
	{"tollbooth", ofDrafts06, func(limit int) (middleware, error) {
		limiter := tollbooth.NewLimiter(float64(limit), &tollboothlimiter.ExpirableOptions{DefaultExpirationTTL: time.Hour}).SetIPLookups([]string{"RemoteAddr"})
		return func(next http.Handler) http.Handler { return tollbooth.LimitHandler(limiter, next) }, nil
	}},
	{"ulule", xRateLimit, func(limit int) (middleware, error) {
		limiter := ulule.New(ululememory.NewStore(), ulule.Rate{Period: time.Hour, Limit: int64(limit)})
		return stdlib.NewMiddleware(limiter).Handler, nil
	}},
}

func weir(headers httplimit.Headers) func(limit int) (middleware, error) {
	return func(limit int) (middleware, error) {
		return httplimit.New(httplimit.Options{
			Headers: headers,
			Rules:   []httplimit.Rule{{Limit: fmt.Sprintf("%d/h", limit)}},
			Logger:  slog.New(slog.DiscardHandler),
		})
	}
}

// byAddress is the client's address as httprate takes it, without the port.
func byAddress(r *http.Request) (string, error) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return host, err
}
