package peers

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	tollbooth "github.com/didip/tollbooth/v7/limiter"
	"github.com/go-chi/httprate"
	sethvargo "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ululelimiter "github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
)

// memoryStore is sethvargo/go-limiter: a fixed window that starts with the first call.
type memoryStore struct{ store sethvargo.Store }

func newMemoryStore(l Limit) (Keyed, error) {
	store, err := memorystore.New(&memorystore.Config{
		Tokens: uint64(l.Burst), Interval: l.Window,
		SweepInterval: l.Idle, SweepMinTTL: l.Idle,
	})
	if err != nil {
		return nil, fmt.Errorf("peers: memorystore: %w", err)
	}
	return memoryStore{store}, nil
}

func (p memoryStore) Take(key string) (bool, error) {
	_, _, _, ok, err := p.store.Take(context.Background(), key)
	return ok, err
}

// Close ignores the error, which only a closed store returns.
func (p memoryStore) Close() { _ = p.store.Close(context.Background()) }

// ulule is ulule/limiter: a fixed window that starts with the first call.
type ulule struct{ l *ululelimiter.Limiter }

func newUlule(l Limit) (Keyed, error) {
	store := ululememory.NewStoreWithOptions(ululelimiter.StoreOptions{
		Prefix:          ululelimiter.DefaultPrefix,
		CleanUpInterval: cmp.Or(l.Idle, ululelimiter.DefaultCleanUpInterval),
	})
	return ulule{ululelimiter.New(store, ululelimiter.Rate{Period: l.Window, Limit: l.Burst})}, nil
}

func (p ulule) Take(key string) (bool, error) {
	answer, err := p.l.Get(context.Background(), key)
	return !answer.Reached, err
}

// throttledStore is throttled: GCRA on a map of words.
type throttledStore struct{ l *throttled.GCRARateLimiterCtx }

func newThrottled(l Limit) (Keyed, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return nil, fmt.Errorf("peers: throttled: %w", err)
	}
	made, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate: throttled.PerDuration(1, l.Refill), MaxBurst: int(l.Burst - 1),
	})
	return throttledStore{made}, err
}

func (p throttledStore) Take(key string) (bool, error) {
	limited, _, err := p.l.RateLimitCtx(context.Background(), key, 1)
	return !limited, err
}

// tollboothLimiter is tollbooth: x/time/rate in an expiring cache.
type tollboothLimiter struct{ l *tollbooth.Limiter }

func newTollbooth(l Limit) (Keyed, error) {
	made := tollbooth.New(&tollbooth.ExpirableOptions{DefaultExpirationTTL: l.Idle})
	made.SetMax(1 / l.Refill.Seconds()).SetBurst(int(l.Burst))
	return tollboothLimiter{made}, nil
}

func (p tollboothLimiter) Take(key string) (bool, error) { return !p.l.LimitReached(key), nil }

// httprateCounter is go-chi/httprate without HTTP: the work of its OnLimit under its mutex, on its own counter,
// without the headers.
type httprateCounter struct {
	l      *httprate.RateLimiter
	limit  float64
	window time.Duration
	mu     sync.Mutex
}

func newHTTPRate(l Limit) (Keyed, error) {
	counter := httprate.NewLocalLimitCounter(l.Window)
	made := httprate.NewRateLimiter(int(l.Burst), l.Window, httprate.WithLimitCounter(counter))
	return &httprateCounter{l: made, limit: float64(l.Burst), window: l.Window}, nil
}

func (p *httprateCounter) Take(key string) (bool, error) {
	window := time.Now().UTC().Truncate(p.window)
	p.mu.Lock()
	defer p.mu.Unlock()
	_, used, err := p.l.Status(key)
	if err != nil || math.Round(used)+1 > p.limit {
		return false, err
	}
	return true, p.l.Counter().IncrementBy(key, window, 1)
}
