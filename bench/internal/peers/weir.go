package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// algorithm constructs the limit of one of Weir's algorithms.
type algorithm struct {
	name      string
	overKeyed bool // measured with Keyed as well as with the engine
	compact   bool // stores a word or two per key
	limit     func(Limit) weir.Limit
}

// algorithms are Weir's keyed algorithms.
var algorithms = []algorithm{
	{"tokenbucket", true, true, func(l Limit) weir.Limit {
		return weir.TokenBucket{Rate: weir.Per(1, l.Refill), Burst: l.Burst}
	}},
	{"leakybucket", false, true, func(l Limit) weir.Limit {
		return weir.LeakyBucket{Rate: weir.Per(1, l.Refill), Queue: l.Burst - 1, NoDelay: l.Burst - 1}
	}},
	{"fixedwindow", true, true, func(l Limit) weir.Limit { return weir.FixedWindow{Rate: weir.Per(l.Burst, l.Window)} }},
	{"slidingwindow", true, true, func(l Limit) weir.Limit { return weir.SlidingWindow{Rate: weir.Per(l.Burst, l.Window)} }},
	{"slidinglog", false, false, func(l Limit) weir.Limit { return weir.SlidingLog{Rate: weir.Per(l.LogCount, l.LogPeriod)} }},
	{"rategate", false, false, func(l Limit) weir.Limit { return weir.RateGate{Rate: weir.Per(l.LogCount, l.LogPeriod)} }},
	{"cycle", false, true, func(l Limit) weir.Limit { return weir.Cycle{Rate: weir.Per(l.Burst, l.Window)} }},
	{"concurrency", false, false, func(l Limit) weir.Limit { return weir.Concurrency{Slots: l.LogCount, Lease: l.LogPeriod} }},
}

// guava are Weir's algorithms for one subject only. They have no burst. To admit everything, they grant a permit each
// nanosecond.
var guava = []algorithm{
	{"bursty", false, false, func(l Limit) weir.Limit { return weir.Bursty{Rate: l.smooth(), Over: time.Second} }},
	{"warmup", false, false, func(l Limit) weir.Limit { return weir.WarmUp{Rate: l.smooth(), Over: time.Microsecond, Cold: 3} }},
}

func (l Limit) smooth() weir.Rate {
	if l.Burst > 1 {
		return weir.PerSecond(weir.MaxRate)
	}
	return weir.Per(1, l.Refill)
}

// limiter is a weir.Limiter.
type limiter struct{ l *weir.Limiter }

func (a limiter) Take() (bool, error) { return a.l.Allow(), nil }

func (a limiter) Close() { a.l.Close() }

func newLimiter(limit func(Limit) weir.Limit) func(Limit) (Single, error) {
	return func(l Limit) (Single, error) {
		made, err := weir.New(limit(l))
		return limiter{made}, err
	}
}

// limiterWait takes with the path of Limiter.Wait, for callers that need not wait or cannot.
type limiterWait struct{ limiter }

func (a limiterWait) Take() (bool, error) { return waited(a.l.WaitMax(context.Background(), 1, 0)) }

func newLimiterWait(l Limit) (Single, error) {
	made, err := weir.New(algorithms[0].limit(l))
	return limiterWait{limiter{made}}, err
}

// waited converts the error of a wait.
func waited(err error) (bool, error) {
	if errors.Is(err, weir.ErrWait) {
		return false, nil
	}
	return err == nil, err
}

// cachedPrecision is the precision of the cached clock.
const cachedPrecision = time.Millisecond

// cached is a limiter with a cached clock.
type cached struct {
	limiter
	clock *weir.CachedClock
}

func (a *cached) Close() {
	a.limiter.Close()
	a.clock.Close()
}

func newCached(l Limit) (Single, error) {
	clock := weir.NewCachedClock(cachedPrecision)
	made, err := weir.NewWith(algorithms[0].limit(l), weir.Options{Clock: clock.Now})
	return &cached{limiter{made}, clock}, err
}

// maxKeys leaves room for the keys of the largest measurement, of which the shards of a table have unequal parts.
const maxKeys = 20_000_000

// keyed is a weir.Keyed of strings.
type keyed struct{ k *weir.Keyed[string] }

func (a keyed) Take(key string) (bool, error) { return a.k.Allow(key), nil }

func (a keyed) Len() int { return a.k.Len() }

func (a keyed) Close() { a.k.Close() }

// keyedWait takes with the path of Keyed.Wait.
type keyedWait struct{ keyed }

func (a keyedWait) Take(key string) (bool, error) {
	return waited(a.k.WaitMax(context.Background(), key, 1, 0))
}

func newKeyedWait(l Limit) (Keyed, error) {
	made, err := weir.NewKeyedWith[string](algorithms[0].limit(l), weir.Options{MaxKeys: maxKeys})
	return keyedWait{keyed{made}}, err
}

func newKeyed(limit func(Limit) weir.Limit) func(Limit) (Keyed, error) {
	return func(l Limit) (Keyed, error) {
		made, err := weir.NewKeyedWith[string](limit(l), weir.Options{MaxKeys: maxKeys})
		return keyed{made}, err
	}
}

// memory is the memory engine with one rule.
type memory struct {
	engine *weir.Memory
	rule   *weir.Rule
}

func (a *memory) Take(key string) (bool, error) {
	d, err := a.engine.Take(context.Background(), a.rule.For(key, 1))
	return d.Allowed, err
}

func newMemory(limit func(Limit) weir.Limit) func(Limit) (Keyed, error) {
	return func(l Limit) (Keyed, error) {
		rule, err := weir.NewRule("bench", limit(l))
		if err != nil {
			return nil, fmt.Errorf("peers: %w", err)
		}
		return &memory{engine: weir.NewMemory(weir.MemoryOptions{MaxKeys: maxKeys}), rule: rule}, nil
	}
}
