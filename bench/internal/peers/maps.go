package peers

import (
	"sync"

	"golang.org/x/time/rate"
)

// The limiter that users write by hand: a map of x/time/rate limiters. It removes no key.

func newRate(l Limit) *rate.Limiter { return rate.NewLimiter(rate.Every(l.Refill), int(l.Burst)) }

type mutexMap struct {
	limit Limit
	mu    sync.Mutex
	m     map[string]*rate.Limiter
}

func newMutexMap(l Limit) (Keyed, error) {
	return &mutexMap{limit: l, m: map[string]*rate.Limiter{}}, nil
}

func (p *mutexMap) Take(key string) (bool, error) {
	p.mu.Lock()
	found, ok := p.m[key]
	if !ok {
		found = newRate(p.limit)
		p.m[key] = found
	}
	p.mu.Unlock()
	return found.Allow(), nil
}

func (p *mutexMap) Len() int { return len(p.m) }

type rwMutexMap struct {
	limit Limit
	mu    sync.RWMutex
	m     map[string]*rate.Limiter
}

func newRWMutexMap(l Limit) (Keyed, error) {
	return &rwMutexMap{limit: l, m: map[string]*rate.Limiter{}}, nil
}

func (p *rwMutexMap) Take(key string) (bool, error) {
	p.mu.RLock()
	found, ok := p.m[key]
	p.mu.RUnlock()
	if !ok {
		found = p.add(key)
	}
	return found.Allow(), nil
}

func (p *rwMutexMap) add(key string) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.m[key]
	if !ok {
		found = newRate(p.limit)
		p.m[key] = found
	}
	return found
}

func (p *rwMutexMap) Len() int { return len(p.m) }

type syncMap struct {
	limit Limit
	m     sync.Map
}

func newSyncMap(l Limit) (Keyed, error) { return &syncMap{limit: l}, nil }

func (p *syncMap) Take(key string) (bool, error) {
	found, ok := p.m.Load(key)
	if !ok {
		found, _ = p.m.LoadOrStore(key, newRate(p.limit))
	}
	return found.(*rate.Limiter).Allow(), nil
}

func (p *syncMap) Len() (n int) {
	for range p.m.Range {
		n++
	}
	return n
}
