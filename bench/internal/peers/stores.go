package peers

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	tollbooth "github.com/didip/tollbooth/v7/limiter"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ululelimiter "github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
)

// newMemoryStore is sethvargo/go-limiter: a fixed window that starts with the first call.
func newMemoryStore(l Limit) (Limiter, error) {
	store, err := memorystore.New(&memorystore.Config{Tokens: uint64(l.Burst), Interval: l.Window})
	if err != nil {
		return Limiter{}, fmt.Errorf("peers: memorystore: %w", err)
	}
	return Limiter{Close: func() { _ = store.Close(context.Background()) }, Take: func(key string) (bool, error) {
		_, _, _, ok, err := store.Take(context.Background(), key)
		return ok, err
	}}, nil
}

// newUlule is ulule/limiter: a fixed window that starts with the first call.
func newUlule(l Limit) (Limiter, error) {
	limiter := ululelimiter.New(ululememory.NewStore(), ululelimiter.Rate{Period: l.Window, Limit: l.Burst})
	return Limiter{Take: func(key string) (bool, error) {
		answer, err := limiter.Get(context.Background(), key)
		return !answer.Reached, err
	}}, nil
}

// newThrottled is throttled: GCRA on a map of words.
func newThrottled(l Limit) (Limiter, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return Limiter{}, fmt.Errorf("peers: throttled: %w", err)
	}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate: throttled.PerDuration(1, l.Refill), MaxBurst: int(l.Burst - 1),
	})
	return Limiter{Take: func(key string) (bool, error) {
		limited, _, err := limiter.RateLimitCtx(context.Background(), key, 1)
		return !limited, err
	}}, err
}

// newTollbooth is tollbooth: x/time/rate in an expiring cache.
func newTollbooth(l Limit) (Limiter, error) {
	limiter := tollbooth.New(&tollbooth.ExpirableOptions{})
	limiter.SetMax(1 / l.Refill.Seconds()).SetBurst(int(l.Burst))
	return Limiter{Take: func(key string) (bool, error) { return !limiter.LimitReached(key), nil }}, nil
}

// newHTTPRate is go-chi/httprate without HTTP: the work of its OnLimit under its mutex, on its own counter, without the
// headers.
func newHTTPRate(l Limit) (Limiter, error) {
	limiter := httprate.NewRateLimiter(int(l.Burst), l.Window, httprate.WithLimitCounter(httprate.NewLocalLimitCounter(l.Window)))
	var mu sync.Mutex
	return Limiter{Take: func(key string) (bool, error) {
		window := time.Now().UTC().Truncate(l.Window)
		mu.Lock()
		defer mu.Unlock()
		_, used, err := limiter.Status(key)
		if err != nil || math.Round(used)+1 > float64(l.Burst) {
			return false, err
		}
		return true, limiter.Counter().IncrementBy(key, window, 1)
	}}, nil
}
