// Program layers measures what layers around the Redis engine gain and cost: hot keys with a Prefetch beside redis_rate,
// refused keys with a DenyUntil beside the memory engine, a healthy call through a Guard, and a key that many processes take ahead
// (fleet.go).
//
//	go run ./bench/layers            everything, a minute; writes bench/LAYERS.md
//	go run ./bench/layers -quick     a trial; prints figures that mean nothing
package main

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/localredis"
	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/redislimit"
)

func main() { bench.Main() }

const about = `One redis-server on the loopback interface shares the cores with the callers. All keys are hot: each caller goes round all of
them without a pause. A run ends in an error unless every decision is admitted, or refused where the row says so. The Guard is
over the memory engine, so that its cost is not lost in that of a server; its calls take a deadline. The 30 processes that ask for
one key are 30 engines, with connections and layers of their own, asked at random instants.`

const (
	perSecond = "decisions/s"
	each      = "ns a decision"

	hotKeys     = "1000 hot keys of 1e6/s burst 1e5, 128 callers"
	refusedKeys = "1000 refused keys, 128 callers"
	oneCaller   = "a call with a deadline, one caller"
)

var bench = &measure.Bench{
	Program: "bench/layers", Title: "Layers", About: about, Report: "bench/LAYERS.md",
	Reps: 7, Window: time.Second,
	Setup: func(context.Context) (string, func(), error) { return localredis.Start() },
	Rows: func(*measure.Options) (list []measure.Row, err error) {
		for _, r := range rows {
			list = append(list, measure.Row{Group: r.group, Line: r.line, Ours: r.line != "redis_rate", Measure: r.measure})
		}
		for _, f := range fleets {
			list = append(list, measure.Row{Group: fleetGroup, Line: f.line, Ours: true, Measure: f.measure})
		}
		return list, nil
	},
	Columns: []measure.Column{{Figure: perSecond, Format: "%.0f", More: true}, {Figure: each, Format: "%.0f"},
		{Figure: callsEach, Format: "%.2f"}, {Figure: ofPossible, Format: "%.3f", More: true}, {Figure: mostOfLeast, Format: "%.2f"}},
	Targets: func([]measure.Row) []measure.Target {
		over := func(group, line, other string) []measure.Case {
			return []measure.Case{{Row: measure.Row{Group: group, Line: line}.Name(), Over: []string{measure.Row{Group: group, Line: other}.Name()}}}
		}
		return append([]measure.Target{
			{Name: "prefetched keys: decisions/s over redis_rate", Figure: perSecond, Format: "%.3g ×", Bound: 50, AtLeast: true, More: true, Cases: over(hotKeys, "Redis, Prefetch", "redis_rate")},
			{Name: "refused keys: decisions/s over the memory engine", Figure: perSecond, Format: "%.3g ×", Bound: 0.5, AtLeast: true, More: true, Cases: over(refusedKeys, "Redis, DenyUntil", "memory engine")},
			{Name: "a healthy call: what a Guard adds", Figure: each, Format: "%.0f ns", Bound: 150, Minus: true, Cases: over(oneCaller, "memory engine, Guard", "memory engine")},
		}, fleetTargets()...)
	},
}

// ask decides on one unit of a key.
type ask func(ctx context.Context, key string) (admitted bool, err error)

// row is callers of one limiter.
type row struct {
	group, line string
	callers     int
	keys        int
	refused     bool
	open        func(addr string) (ask, func(), error)
}

var (
	hot  = weir.TokenBucket{Rate: weir.PerSecond(1e6), Burst: 1e5}
	used = weir.FixedWindow{Rate: weir.Per(1, 366*24*time.Hour)} // by the first decision
	wide = weir.TokenBucket{Rate: weir.PerSecond(1e6), Burst: 1e12}
)

var rows = []row{
	{hotKeys, "redis_rate", 128, 1000, false, redisRate},
	{hotKeys, "Redis, Prefetch", 128, 1000, false, redisBelow(hot, prefetch)},
	{refusedKeys, "memory engine", 128, 1000, true, memoryBelow(used, 0, bare)},
	{refusedKeys, "Redis, DenyUntil", 128, 1000, true, redisBelow(used, func(e weir.Engine) (weir.Engine, func(), error) {
		denier, err := layer.DenyUntil(e, layer.DenyOptions{})
		return denier, func() {}, err
	})},
	{oneCaller, "memory engine", 1, 1, false, memoryBelow(wide, time.Second, bare)},
	{oneCaller, "memory engine, Guard", 1, 1, false, memoryBelow(wide, time.Second, func(e weir.Engine) (weir.Engine, func(), error) {
		guard, err := layer.Guard(punctual{e}, layer.GuardOptions{})
		if err != nil {
			return nil, nil, err
		}
		return guard, guard.Close, nil
	})},
}

// around puts a layer around an engine, which end closes.
type around func(weir.Engine) (layered weir.Engine, end func(), err error)

func bare(e weir.Engine) (weir.Engine, func(), error) { return e, func() {}, nil }

// punctual is an engine that keeps the deadlines of its calls, like redislimit.
type punctual struct{ weir.Engine }

func (punctual) KeepsDeadlines() bool { return true }

func redisBelow(limit weir.Limit, layered around) func(string) (ask, func(), error) {
	return func(addr string) (ask, func(), error) {
		engine, err := redislimit.Open("redis://"+addr, redislimit.Options{})
		if err != nil {
			return nil, nil, err
		}
		asks, end, err := asksOf(engine, limit, 0, layered)
		return asks, func() { end(); engine.Close() }, err
	}
}

func memoryBelow(limit weir.Limit, within time.Duration, layered around) func(string) (ask, func(), error) {
	return func(string) (ask, func(), error) {
		return asksOf(weir.NewMemory(weir.MemoryOptions{}), limit, within, layered)
	}
}

// asksOf asks an engine in layers. Each call may take the time within; 0 is without a bound.
func asksOf(e weir.Engine, limit weir.Limit, within time.Duration, layered around) (ask, func(), error) {
	rule, err := weir.NewRule("bench", limit)
	if err != nil {
		return nil, func() {}, err
	}
	engine, end, err := layered(e)
	if err != nil {
		return nil, func() {}, err
	}
	if within == 0 {
		return func(ctx context.Context, key string) (bool, error) {
			d, err := engine.Take(ctx, rule.For(key, 1))
			return d.Allowed, err
		}, end, nil
	}
	call := weir.Call{Op: weir.OpTake, Requests: make([]weir.Request, 1), Within: within} // of the one caller
	return func(ctx context.Context, key string) (bool, error) {
		call.Requests[0] = rule.For(key, 1)
		answer, err := engine.Do(ctx, call)
		return answer.Decision.Allowed, err
	}, end, nil
}

func redisRate(addr string) (ask, func(), error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	limiter := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: int(hot.Rate.Count), Burst: int(hot.Burst), Period: time.Second}
	return func(ctx context.Context, key string) (bool, error) {
		result, err := limiter.Allow(ctx, key, limit)
		return err == nil && result.Allowed == 1, err
	}, func() { _ = client.Close() }, nil
}

// measure runs the callers on an empty server with a new limiter.
func (r row) measure(ctx context.Context, o *measure.Options) (measure.Figures, error) {
	control := redis.NewClient(&redis.Options{Addr: o.Place})
	defer func() { _ = control.Close() }()
	if err := control.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	ask, end, err := r.open(o.Place)
	if err != nil {
		return nil, err
	}
	defer end()
	keys := make([]string, r.keys)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%06d", i)
		if _, err := ask(ctx, keys[i]); err != nil { // which uses up the limits that refuse
			return nil, err
		}
	}
	// Open connections, and let layers learn which keys are hot.
	if _, _, err := r.load(ctx, ask, keys, o.Window/2); err != nil {
		return nil, err
	}
	decided, took, err := r.load(ctx, ask, keys, o.Window)
	if err != nil {
		return nil, err
	}
	rate := float64(decided) / took.Seconds()
	return measure.Figures{perSecond: rate, each: float64(time.Second) / rate}, nil
}

// load runs the callers for a time, and fails unless each decision is as the row says.
func (r row) load(ctx context.Context, ask ask, keys []string, window time.Duration) (decided int64, took time.Duration, err error) {
	var stop atomic.Bool
	var wrong atomic.Pointer[error]
	counts := make([]int64, r.callers)
	began := time.Now()
	defer time.AfterFunc(window, func() { stop.Store(true) }).Stop()
	var all sync.WaitGroup
	for i := range r.callers {
		all.Go(func() {
			n, at := int64(0), i*len(keys)/r.callers
			for ; n == 0 || !stop.Load() && ctx.Err() == nil; n++ {
				admitted, err := ask(ctx, keys[at])
				if err == nil && admitted == r.refused {
					err = fmt.Errorf("%s: key %s: admitted is %v, want %v", r.line, keys[at], admitted, !r.refused)
				}
				if err != nil {
					wrong.Store(&err)
					return
				}
				if at++; at == len(keys) {
					at = 0
				}
			}
			counts[i] = n
		})
	}
	all.Wait()
	took = time.Since(began)
	least := int64(math.MaxInt64)
	for _, n := range counts {
		decided, least = decided+n, min(least, n)
	}
	if err := wrong.Load(); err != nil {
		return 0, 0, *err
	}
	if least == 0 {
		return 0, 0, fmt.Errorf("%s: a caller made no decision", r.line)
	}
	return decided, took, ctx.Err()
}
