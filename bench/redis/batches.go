package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit"
)

// batchSize is the number of decisions in an explicit batch.
const batchSize = 100

const nameBareBatch = "bare GCRA script, batch"

// algorithm is a limit that admits all decisions of a run, and one of the same kind that refuses them after fill
// takes from each key. If steady, the run also fills keys of the first limit: their states then have the greatest
// size that the limit permits, and each new unit replaces an old one.
type algorithm struct {
	name           string
	admits, denies weir.Limit
	fill           int
	steady         bool
}

// tick is the step of the clock per batch for steady states, and visit the time between two takes from a key.
const (
	tick  = time.Millisecond
	visit = tick * fewKeys / batchSize
)

// algorithms returns all of them. A limit that stores single units has a period two visits shorter than its units
// need, because a run makes some visits early.
func algorithms() []algorithm {
	const month, year = 30 * 24 * time.Hour, 366 * 24 * time.Hour
	full := func(units int64) weir.Rate { return weir.Per(units, time.Duration(units-2)*visit) }
	many, once := weir.Per(burst, month), weir.Per(1, year)
	return []algorithm{
		{"token bucket", weir.TokenBucket{Rate: weir.PerSecond(1), Burst: burst}, weir.TokenBucket{Rate: weir.Per(1, month), Burst: 1}, 1, false},
		{"leaky bucket", weir.LeakyBucket{Rate: weir.PerSecond(1000), Queue: burst}, weir.LeakyBucket{Rate: weir.Per(1, month)}, 1, false},
		{"fixed window", weir.FixedWindow{Rate: many}, weir.FixedWindow{Rate: once}, 1, false},
		{"sliding window", weir.SlidingWindow{Rate: many}, weir.SlidingWindow{Rate: once}, 1, false},
		{"cycle", weir.Cycle{Rate: many}, weir.Cycle{Rate: once}, 1, false},
		{"sliding log of 64", weir.SlidingLog{Rate: full(64)}, weir.SlidingLog{Rate: weir.Per(64, month)}, 64, true},
		{"sliding log of 64 that counts denied", weir.SlidingLog{Rate: full(64), CountDenied: true}, weir.SlidingLog{Rate: weir.Per(64, month), CountDenied: true}, 64, true},
		{"rate gate of 64", weir.RateGate{Rate: full(64)}, weir.RateGate{Rate: weir.Per(64, month)}, 64, true},
		{"concurrency of 20", weir.Concurrency{Slots: 20, Lease: full(20).Period}, weir.Concurrency{Slots: 20, Lease: month}, 20, true},
		{"concurrency of 64", weir.Concurrency{Slots: 64, Lease: full(64).Period}, weir.Concurrency{Slots: 64, Lease: month}, 64, true},
	}
}

// keys returns the number of keys of a run. It is smaller if the run has to fill them first.
func (a algorithm) keys() int {
	if a.steady {
		return fewKeys
	}
	return manyKeys
}

func (a algorithm) admitting() func(string) (ask, func(), error) {
	if a.steady {
		return weirEach(a.admits, a.fill, a.keys(), true)
	}
	return weirEach(a.admits, 0, 0, false)
}

func (a algorithm) denying() func(string) (ask, func(), error) {
	return weirEach(a.denies, a.fill, a.keys(), a.steady)
}

// weirEach decides in batches after fill takes from each key. With a clock of its own, the time between batches is a
// tick.
func weirEach(limit weir.Limit, fill, keys int, clock bool) func(string) (ask, func(), error) {
	return func(addr string) (ask, func(), error) {
		now := time.Now().UnixNano()
		var options redislimit.Options
		if clock {
			options.Clock = func() int64 { return now }
		}
		engine, rule, err := openEngine(addr, limit, options)
		if err != nil {
			return nil, nil, err
		}
		requests, results := make([]weir.Request, batchSize), make([]weir.Result, batchSize)
		calls, lease := enginekit.Calls(weir.OpTake, requests...), uint64(0)
		ask := func(ctx context.Context, keys []string) (admitted int, err error) {
			for i, key := range keys {
				lease++
				requests[i] = rule.For(key, 1)
				calls[i].Lease = lease
			}
			now += int64(tick)
			return admittedOf(ctx, engine, calls[:len(keys)], results[:len(keys)])
		}
		if err := fillAll(ask, keysOf(keys), fill); err != nil {
			engine.Close()
			return nil, nil, err
		}
		return ask, engine.Close, nil
	}
}

func admittedOf(ctx context.Context, engine weir.Engine, calls []weir.Call, results []weir.Result) (admitted int, err error) {
	if err := engine.Each(ctx, calls, results); err != nil {
		return 0, err
	}
	for _, r := range results {
		if r.Err != nil {
			return admitted, r.Err
		}
		if r.Decision.Allowed {
			admitted++
		}
	}
	return admitted, nil
}

// fillAll takes from each key times times, in the order of a run.
func fillAll(ask ask, keys []string, times int) error {
	batch := make([]string, batchSize)
	for at := 0; times > 0; {
		for i := range batch {
			batch[i] = keys[at]
			at = (at + stride) % len(keys)
		}
		if _, err := ask(context.Background(), batch); err != nil {
			return err
		}
		if at == 0 {
			times--
		}
	}
	return nil
}

func bareEach(addr string) (ask, func(), error) {
	client, err := dialRueidis(addr)
	if err != nil {
		return nil, nil, err
	}
	script := rueidis.NewLuaScript(bareBatch)
	return func(ctx context.Context, keys []string) (admitted int, err error) {
		reply, err := script.Exec(ctx, client, keys, bareArgs).AsIntSlice()
		for i := 0; i < len(reply); i += 2 {
			admitted += int(reply[i])
		}
		return admitted, err
	}, client.Close, nil
}
