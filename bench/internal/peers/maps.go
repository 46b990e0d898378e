package peers

import (
	"sync"

	"golang.org/x/time/rate"
)

// The limiters that users write by hand: maps of x/time/rate limiters. They remove no key.

func newRate(l Limit) *rate.Limiter { return rate.NewLimiter(rate.Every(l.Refill), int(l.Burst)) }

func newMutexMap(l Limit) (Limiter, error) {
	var mu sync.Mutex
	m := map[string]*rate.Limiter{}
	return Limiter{Len: func() int { return len(m) }, Take: func(key string) (bool, error) {
		mu.Lock()
		found, ok := m[key]
		if !ok {
			found = newRate(l)
			m[key] = found
		}
		mu.Unlock()
		return found.Allow(), nil
	}}, nil
}

func newRWMutexMap(l Limit) (Limiter, error) {
	var mu sync.RWMutex
	m := map[string]*rate.Limiter{}
	add := func(key string) *rate.Limiter {
		mu.Lock()
		defer mu.Unlock()
		found, ok := m[key]
		if !ok {
			found = newRate(l)
			m[key] = found
		}
		return found
	}
	return Limiter{Len: func() int { return len(m) }, Take: func(key string) (bool, error) {
		mu.RLock()
		found, ok := m[key]
		mu.RUnlock()
		if !ok {
			found = add(key)
		}
		return found.Allow(), nil
	}}, nil
}

func newSyncMap(l Limit) (Limiter, error) {
	var m sync.Map
	return Limiter{Take: func(key string) (bool, error) {
		found, ok := m.Load(key)
		if !ok {
			found, _ = m.LoadOrStore(key, newRate(l))
		}
		return found.(*rate.Limiter).Allow(), nil
	}}, nil
}
