package peers

import (
	"context"
	"errors"
	"time"

	"github.com/weirflow/weir"
)

// algorithm constructs the limit of one of Weir's algorithms.
type algorithm struct {
	name      string
	overKeyed bool // measured with Keyed as well as with the engine
	limit     func(Limit) weir.Limit
}

// algorithms are Weir's keyed algorithms.
var algorithms = []algorithm{
	{"tokenbucket", true, func(l Limit) weir.Limit {
		return weir.TokenBucket{Rate: weir.Per(1, l.Refill), Burst: l.Burst}
	}},
	{"leakybucket", false, func(l Limit) weir.Limit {
		return weir.LeakyBucket{Rate: weir.Per(1, l.Refill), Queue: l.Burst - 1, NoDelay: l.Burst - 1}
	}},
	{"fixedwindow", true, func(l Limit) weir.Limit { return weir.FixedWindow{Rate: weir.Per(l.Burst, l.Window)} }},
	{"slidingwindow", true, func(l Limit) weir.Limit { return weir.SlidingWindow{Rate: weir.Per(l.Burst, l.Window)} }},
	{"slidinglog", false, func(l Limit) weir.Limit { return weir.SlidingLog{Rate: weir.Per(l.LogCount, l.LogPeriod)} }},
	{"rategate", false, func(l Limit) weir.Limit { return weir.RateGate{Rate: weir.Per(l.LogCount, l.LogPeriod)} }},
	{"cycle", false, func(l Limit) weir.Limit { return weir.Cycle{Rate: weir.Per(l.Burst, l.Window)} }},
	{"concurrency", false, func(l Limit) weir.Limit { return weir.Concurrency{Slots: l.LogCount, Lease: l.LogPeriod} }},
}

// guava are Weir's algorithms for one subject only. They have no burst. To admit everything, they grant a permit each
// nanosecond.
var guava = []algorithm{
	{"bursty", false, func(l Limit) weir.Limit { return weir.Bursty{Rate: l.smooth(), Over: time.Second} }},
	{"warmup", false, func(l Limit) weir.Limit { return weir.WarmUp{Rate: l.smooth(), Over: time.Microsecond, Cold: 3} }},
}

func (l Limit) smooth() weir.Rate {
	if l.Burst > 1 {
		return weir.PerSecond(weir.MaxRate)
	}
	return weir.Per(1, l.Refill)
}

func newLimiter(limit func(Limit) weir.Limit) func(Limit) (Limiter, error) {
	return func(l Limit) (Limiter, error) {
		made, err := weir.New(limit(l))
		return Limiter{Take: func(string) (bool, error) { return made.Allow(), nil }, Close: made.Close}, err
	}
}

// newLimiterWait takes with the path of Limiter.Wait, for callers that need not wait or cannot.
func newLimiterWait(l Limit) (Limiter, error) {
	made, err := weir.New(algorithms[0].limit(l))
	return Limiter{Take: func(string) (bool, error) { return waited(made.WaitMax(context.Background(), 1, 0)) }, Close: made.Close}, err
}

// waited converts the error of a wait.
func waited(err error) (bool, error) {
	if errors.Is(err, weir.ErrWait) {
		return false, nil
	}
	return err == nil, err
}

// maxKeys leaves room for the keys of the largest measurement, of which the shards of a table have unequal parts.
const maxKeys = 20_000_000

func newKeyed(limit func(Limit) weir.Limit) func(Limit) (Limiter, error) {
	return func(l Limit) (Limiter, error) {
		k, err := weir.NewKeyedWith[string](limit(l), weir.Options{MaxKeys: maxKeys})
		return Limiter{Take: func(key string) (bool, error) { return k.Allow(key), nil }, Len: k.Len, Close: k.Close}, err
	}
}

// newKeyedWait takes with the path of Keyed.Wait.
func newKeyedWait(l Limit) (Limiter, error) {
	k, err := weir.NewKeyedWith[string](algorithms[0].limit(l), weir.Options{MaxKeys: maxKeys})
	return Limiter{Take: func(key string) (bool, error) { return waited(k.WaitMax(context.Background(), key, 1, 0)) }, Len: k.Len, Close: k.Close}, err
}

// newMemory is the memory engine with one rule.
func newMemory(limit func(Limit) weir.Limit) func(Limit) (Limiter, error) {
	return func(l Limit) (Limiter, error) {
		rule, err := weir.NewRule("bench", limit(l))
		engine := weir.NewMemory(weir.MemoryOptions{MaxKeys: maxKeys})
		return Limiter{Take: func(key string) (bool, error) {
			d, err := engine.Take(context.Background(), rule.For(key, 1))
			return d.Allowed, err
		}}, err
	}
}
