package redislimit_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// bareScript is the shortest useful GCRA script, as a user would write it.
const bareScript = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local tat = tonumber(redis.call('GET', KEYS[1]) or now)
if tat < now then tat = now end
local new = tat + ARGV[1]
if new - now > tonumber(ARGV[2]) then return {0, tat - now} end
redis.call('SET', KEYS[1], new, 'PX', math.ceil((new - now) / 1000))
return {1, new - now}`

// BenchmarkDecisions measures concurrent callers, beside a bare script through the same client.
func BenchmarkDecisions(b *testing.B) {
	server := redistest.Start(b)
	client := dial(b, server)
	engine := newEngine(b, client, redislimit.Options{})
	rule := newRule(b, "bench", weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 20})
	bare := rueidis.NewLuaScript(bareScript)
	keys := make([]string, 10000)
	for i := range keys {
		keys[i] = fmt.Sprint("user:", i)
	}
	ask := map[string]func(key string) error{
		"weir": func(key string) error {
			_, err := engine.Take(context.Background(), rule.For(key, 1))
			return err
		},
		"bare": func(key string) error {
			return bare.Exec(context.Background(), client, []string{key}, []string{"100000", "2000000"}).Error()
		},
	}
	for _, callers := range []int{1, 16, 128} {
		for _, name := range []string{"bare", "weir"} {
			b.Run(name+"/"+strconv.Itoa(callers), func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(max(callers/2, 1))
				if callers == 1 {
					i := 0
					for b.Loop() {
						if err := ask[name](keys[i%len(keys)]); err != nil {
							b.Fatal(err)
						}
						i++
					}
					return
				}
				var next atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := ask[name](keys[next.Add(7919)%int64(len(keys))]); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
	b.Run("weir/each 100", func(b *testing.B) {
		requests := make([]weir.Request, 100)
		results := make([]weir.Result, 100)
		i := 0
		for b.Loop() {
			for j := range requests {
				requests[j] = rule.For(keys[i%len(keys)], 1)
				i++
			}
			if err := engine.Each(context.Background(), enginekit.Calls(weir.OpTake, requests...), results); err != nil || results[0].Err != nil {
				b.Fatal(err, results[0].Err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/decision")
	})
}
