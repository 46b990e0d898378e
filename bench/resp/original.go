package main

import (
	"context"
	"fmt"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/redis/go-redis/v9"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/workload"
)

// originalFlag measures weir serve beside envoyproxy/ratelimit itself, instead of all that bench measures.
const originalFlag = "-envoyproxy"

const (
	sharers = 64 // callers
	high    = 1_000_000
	low     = 5
	p99     = "p99 µs of a call"
)

// The servers.
const (
	theirs     = "envoyproxy/ratelimit"
	theirsWide = "envoyproxy/ratelimit, `REDIS_POOL_SIZE=64`"
	ours       = "`weir serve --compat envoyproxy`"
)

var originalGroup = fmt.Sprintf("%d callers, one descriptor a call", sharers)

var besideOriginal = &measure.Bench{
	Program: "bench/resp " + originalFlag, Title: "Beside envoyproxy/ratelimit", Report: "bench/ENVOYPROXY.md", Reps: 10, Window: 3 * time.Second,
	About: fmt.Sprintf(`envoyproxy/ratelimit (%s), built for the run, and the daemon read the same file and count in the
same redis-server. They take turns. %d callers share %d connections, have %d keys together and none in common, and wait for each
answer. They share the cores with the servers, so what the client costs is in every time. The CPU time is that of the server's process
and of Redis. Settings are the defaults, except that envoyproxy/ratelimit keeps no statistics, and that the daemon gives Redis 5 s
(--deadline), so that it refuses nothing for want of an answer.

A run ends in an error unless every answer is an admission that says how often its key was asked for before, Redis then has one key
for each, and each server refuses the next call after %d under a limit of that.`, originalVersion, sharers, channels, keys, low),
	Setup:   setupOriginal,
	Rows:    originalRows,
	Columns: []measure.Column{{Figure: callsASec, Format: "%.0f", More: true}, {Figure: serverCPU, Format: "%.2f"}, {Figure: median, Format: "%.0f"}, {Figure: p99, Format: "%.0f"}},
	Targets: func([]measure.Row) []measure.Target {
		name := func(line string) string { return line + ", " + originalGroup }
		beside := []measure.Case{{Row: name(ours), Over: []string{name(theirs), name(theirsWide)}}}
		return []measure.Target{
			{Name: "calls a second, over the faster of the two", Figure: callsASec, Format: "%.2f ×", Bound: 2, AtLeast: true, More: true, Cases: beside},
			{Name: "p99, over the lower of the two", Figure: p99, Format: "%.2f ×", Bound: 0.5, Cases: beside},
		}
	},
}

func originalRows(o *measure.Options) (list []measure.Row, err error) {
	at := placed(o.Place)
	for _, s := range []struct{ line, name string }{{theirs, "theirs"}, {theirsWide, "wide"}, {ours, "ours"}} {
		list = append(list, measure.Row{Group: originalGroup, Line: s.line, Measure: func(ctx context.Context, o *measure.Options) (measure.Figures, error) {
			return share(ctx, o, at[s.name], usage{at[s.name+"-pid"], at["redis"]})
		}})
	}
	return list, nil
}

// share measures callers with keys of their own, on a Redis that begins empty.
func share(ctx context.Context, o *measure.Options, address string, used usage) (measure.Figures, error) {
	control := redis.NewClient(&redis.Options{Addr: used.redis})
	defer func() { _ = control.Close() }()
	if err := control.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	clients, end, err := dial(address)
	if err != nil {
		return nil, err
	}
	defer end()
	var asks [sharers]func(context.Context) error
	for caller := range asks {
		asks[caller] = counted(clients[caller%channels], caller)
	}
	for range keys/sharers + 1 { // Redis knows every key before the window
		for _, ask := range asks {
			if err := ask(ctx); err != nil {
				return nil, err
			}
		}
	}
	figures, err := asking(ctx, o, sharers, 1, used, func(caller int) func(context.Context) error { return asks[caller] })
	if err != nil {
		return nil, err
	}
	if all, err := control.Keys(ctx, "*user-*").Result(); err != nil || len(all) != keys {
		return nil, fmt.Errorf("found %d keys of users in Redis and error %v, want %d", len(all), err, keys)
	}
	return figures, nil
}

// counted returns what a caller does again and again: it goes round its own keys, and checks that each answer counts their calls.
func counted(client service.RateLimitServiceClient, caller int) func(context.Context) error {
	var calls []*service.RateLimitRequest
	for i := caller; i < keys; i += sharers {
		calls = append(calls, callFor("user", workload.Key(i)))
	}
	asked := 0
	return func(ctx context.Context) error {
		answer, err := client.ShouldRateLimit(ctx, calls[asked%len(calls)])
		if err != nil {
			return err
		}
		left := high - 1 - asked/len(calls)
		asked++
		if answer.OverallCode != service.RateLimitResponse_OK || len(answer.Statuses) != 1 || answer.Statuses[0].LimitRemaining != uint32(left) {
			return fmt.Errorf("answer %v, want an admission with %d left", answer, left)
		}
		return nil
	}
}

// refusesAbove asks a server under the low limit, until it refuses.
func refusesAbove(ctx context.Context, address, key string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	clients, end, err := dial(address)
	if err != nil {
		return err
	}
	defer end()
	for i := range low + 1 {
		answer, err := clients[0].ShouldRateLimit(ctx, callFor("few", key))
		if err != nil {
			return err
		}
		want := service.RateLimitResponse_OK
		if i == low {
			want = service.RateLimitResponse_OVER_LIMIT
		}
		if answer.OverallCode != want {
			return fmt.Errorf("answer %v to call %d under a limit of %d, want %v", answer, i+1, low, want)
		}
	}
	return nil
}

func callFor(key, value string) *service.RateLimitRequest {
	return &service.RateLimitRequest{Domain: "shop", Descriptors: []*envoy.RateLimitDescriptor{{Entries: []*envoy.RateLimitDescriptor_Entry{{Key: key, Value: value}}}}}
}
