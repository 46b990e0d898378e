package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
)

// batchSize is how many decisions an explicit batch holds.
const batchSize = 100

const nameBareBatch = "bare GCRA script, batch"

// algorithm is a limit that admits what a run asks, and one of the same kind
// that a first take of cost `fill` uses up for longer than a run.
type algorithm struct {
	name           string
	admits, denies weir.Limit
	fill           int64
}

func algorithms() []algorithm {
	const month = 30 * 24 * time.Hour
	few := weir.Per(1, month)
	many := weir.Per(burst, month)
	return []algorithm{
		{"token bucket", weir.TokenBucket{Rate: weir.PerSecond(1), Burst: burst}, weir.TokenBucket{Rate: few, Burst: 1}, 1},
		{"leaky bucket", weir.LeakyBucket{Rate: weir.PerSecond(1000), Queue: burst}, weir.LeakyBucket{Rate: few}, 1},
		{"fixed window", weir.FixedWindow{Rate: many}, weir.FixedWindow{Rate: weir.Per(1, 366*24*time.Hour)}, 1},
		{"sliding window", weir.SlidingWindow{Rate: many}, weir.SlidingWindow{Rate: weir.Per(1, 366*24*time.Hour)}, 1},
		{"sliding log of 64", weir.SlidingLog{Rate: weir.PerSecond(64)}, weir.SlidingLog{Rate: weir.Per(64, month)}, 64},
		{"rate gate of 64", weir.RateGate{Rate: weir.PerSecond(64)}, weir.RateGate{Rate: weir.Per(64, month)}, 64},
		{"cycle", weir.Cycle{Rate: many}, weir.Cycle{Rate: weir.Per(1, 366*24*time.Hour)}, 1},
		{"concurrency of 64", weir.Concurrency{Slots: 64, Lease: time.Second}, weir.Concurrency{Slots: 64, Lease: month}, 64},
	}
}

// weirEach asks in batches. With fill the keys are used up before.
func weirEach(limit weir.Limit, fill int64) func(string) (ask, func(), error) {
	return func(addr string) (ask, func(), error) {
		engine, rule, err := openEngine(addr, limit)
		if err != nil {
			return nil, nil, err
		}
		if fill > 0 {
			if err := takeAll(engine, rule, fill); err != nil {
				engine.Close()
				return nil, nil, err
			}
		}
		requests, results := make([]weir.Request, batchSize), make([]weir.Result, batchSize)
		return func(ctx context.Context, keys []string) (admitted int, err error) {
			for i, key := range keys {
				requests[i] = rule.For(key, 1)
			}
			if err := engine.TakeEach(ctx, requests[:len(keys)], results[:len(keys)]); err != nil {
				return 0, err
			}
			for _, r := range results[:len(keys)] {
				if r.Err != nil {
					return admitted, r.Err
				}
				if r.Decision.Allowed {
					admitted++
				}
			}
			return admitted, nil
		}, engine.Close, nil
	}
}

func takeAll(engine weir.Engine, rule *weir.Rule, cost int64) error {
	keys := keysOf(manyKeys)
	requests := make([]weir.Request, len(keys))
	results := make([]weir.Result, len(keys))
	for i, key := range keys {
		requests[i] = rule.For(key, cost)
	}
	if err := engine.TakeEach(context.Background(), requests, results); err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil {
			return r.Err
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
