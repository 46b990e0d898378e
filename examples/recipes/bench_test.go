package recipes

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// BenchmarkRecord reports the server's CPU time for one Record, or one Take of the engine, and at the end its memory
// for a subject, by the number of records of each subject in a window. docs/from/redis-recipes.md shows a run.
func BenchmarkRecord(b *testing.B) {
	for _, each := range []int{1, 64, 1024} {
		for name, construct := range map[string]func(rueidis.Client) counter{
			"fixed window": func(c rueidis.Client) counter { return FixedWindow{Client: c, Window: time.Hour} },
			"two windows":  func(c rueidis.Client) counter { return TwoWindows{Client: c, Window: time.Hour} },
			"log":          func(c rueidis.Client) counter { return Log{Client: c, Window: time.Hour} },
			"weighing log": func(c rueidis.Client) counter { return Log{Client: c, Window: time.Hour, Weigh: true} },

			"engine, fixed window":   func(c rueidis.Client) counter { return newDecider(b, c, "fixed window 2000/h") },
			"engine, sliding window": func(c rueidis.Client) counter { return newDecider(b, c, "sliding window 2000/h") },
			"engine, sliding log":    func(c rueidis.Client) counter { return newDecider(b, c, "sliding log 2000/h") },
			"engine, token bucket":   func(c rueidis.Client) counter { return newDecider(b, c, "token bucket 2000/h") },
		} {
			b.Run(fmt.Sprintf("%s/records=%d", name, each), func(b *testing.B) {
				server := redistest.Start(b)
				benchmarkRecord(b, server, construct(connect(b, server.Addr)), each)
			})
		}
	}
}

// decider is the engine of package redislimit in the form of a recipe, for comparison. Its limits are larger than
// what is recorded, so it admits everything.
type decider struct {
	engine *redislimit.Engine
	rule   *weir.Rule
}

func newDecider(b *testing.B, client rueidis.Client, limit string) decider {
	engine, err := redislimit.New(client, redislimit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	rule, err := weir.ParseRule("login=" + limit)
	if err != nil {
		b.Fatal(err)
	}
	return decider{engine, rule}
}

func (d decider) Record(ctx context.Context, key Key, cost int64) (used int64, err error) {
	answer, err := d.engine.Take(ctx, d.rule.For(key.Subject, cost))
	if err == nil && !answer.Allowed {
		err = fmt.Errorf("refused: %+v", answer)
	}
	return answer.Limit - answer.Remaining, err
}

func (d decider) Fetch(ctx context.Context, key Key) (used int64, err error) {
	answer, err := d.engine.Peek(ctx, d.rule.For(key.Subject, 1))
	return answer.Limit - answer.Remaining, err
}

// benchmarkRecord has 32 callers record, each times for a subject.
func benchmarkRecord(b *testing.B, server *redistest.Server, c counter, each int) {
	var number atomic.Int64
	memory, cpu := infoNumber(b, server, "used_memory"), serverCPU(b, server)
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			subject := strconv.FormatInt((number.Add(1)-1)/int64(each), 10)
			if _, err := c.Record(b.Context(), Key{"shop", "login", subject}, 1); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	records := float64(number.Load())
	b.ReportMetric((serverCPU(b, server)-cpu)*1e6/records, "redis-us/op")
	b.ReportMetric((infoNumber(b, server, "used_memory")-memory)/max(1, records/float64(each)), "B/subject")
}

func serverCPU(b *testing.B, server *redistest.Server) float64 {
	return infoNumber(b, server, "used_cpu_user") + infoNumber(b, server, "used_cpu_sys")
}

func infoNumber(b *testing.B, server *redistest.Server, field string) float64 {
	b.Helper()
	n, err := strconv.ParseFloat(server.Info(field), 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}
