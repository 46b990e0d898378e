package redislimit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// recordingSender remembers the last command of an engine.
type recordingSender struct {
	server *redistest.Server
	last   []string
}

func (r *recordingSender) Send(_ context.Context, command ...string) (string, error) {
	r.last = slices.Clone(command)
	reply, err := r.server.Ask(command...)
	if err != nil {
		return "", senderError{err}
	}
	text, _ := reply.(string)
	return text, nil
}

// BenchmarkScript measures the time that a server spends in the script, by its own statistics, for one call and for calls of
// 128 callers. A figure is that of the fastest window.
func BenchmarkScript(b *testing.B) {
	server := redistest.Start(b)
	server.Do("SCRIPT", "LOAD", wire.Script().Source)
	for _, limits := range []struct {
		name  string
		texts []string // of the rules, of which callers have one after the other
	}{
		{"bucket", []string{"token bucket 2000000/1s burst 1000000"}},
		{"bucket refused", []string{"token bucket 1/2000000s burst 1"}},
		{"leaky", []string{"leaky bucket 2000000/1s queue 1000000"}},
		{"window", []string{"sliding window 1000000000/2000000s"}},
		{"cycle", []string{"cycle 1000000000/2000000s"}},
		{"bucket and window", []string{"token bucket 2000000/1s burst 1000000 and fixed window 1000000000/2000000s"}},
		{"three windows", []string{"fixed window 1000000000/1s and fixed window 1000000000/2s and fixed window 1000000000/3s"}},
		{"log", []string{"sliding log 1000/1s"}},
		{"log refused", []string{"sliding log 2/2000000s"}},
		{"long log", []string{"sliding log 30000/1s"}},
		{"gate", []string{"rate gate 1000/1s"}},
		{"slots", []string{"concurrency 1000 lease 1s"}},
		{"bucket and log", []string{"token bucket 2000000/1s burst 1000000 and sliding log 1000/1s"}},
		{"mixed", []string{"token bucket 2000000/1s burst 1000000", "token bucket 1000000/1s burst 1000000", "sliding window 1000000000/2000000s"}},
	} {
		for _, callers := range []int{1, 128} {
			b.Run(fmt.Sprintf("%s/%d", limits.name, callers), func(b *testing.B) {
				command := commandOf(b, server, limits.texts, callers)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(scriptTime(b, server, command), "us/call")
			})
		}
	}
}

// commandOf returns the command by which an engine decides on known keys of rules.
func commandOf(b *testing.B, server *redistest.Server, texts []string, callers int) []string {
	b.Helper()
	sender := &recordingSender{server: server}
	engine, err := NewWith(sender, Options{Prefix: "weir" + strings.NewReplacer(" ", "", "/", "").Replace(fmt.Sprint(b.Name(), callers))})
	if err != nil {
		b.Fatal(err)
	}
	var requests []weir.Request
	var calls []weir.Call
	for i := range callers {
		rule, err := weir.ParseRule(fmt.Sprintf("r%d=%s", i%len(texts), texts[i%len(texts)]))
		if err != nil {
			b.Fatal(err)
		}
		if i >= len(texts) {
			rule = requests[i-len(texts)].Rule
		}
		q := rule.For(fmt.Sprint("user-", i), 1)
		requests = append(requests, q)
		call := enginekit.Calls(weir.OpTake, q)[0]
		if strings.Contains(texts[0], "concurrency") {
			call.Lease = uint64(i + 1)
		}
		calls = append(calls, call)
	}
	for range 2 {
		if err := engine.Each(b.Context(), calls, make([]weir.Result, callers)); err != nil {
			b.Fatal(err)
		}
	}
	return sender.last
}

// scriptTime returns the time of a call in us, in the fastest window.
func scriptTime(b *testing.B, server *redistest.Server, command []string) float64 {
	b.Helper()
	const calls = 50
	least := math.Inf(1)
	for b.Loop() {
		server.Do("CONFIG", "RESETSTAT")
		for range calls {
			server.Do(command...)
		}
		stats, _ := server.Do("INFO", "commandstats").(string)
		_, stats, _ = strings.Cut(stats, "cmdstat_evalsha:")
		var made, us float64
		if _, err := fmt.Sscanf(stats, "calls=%f,usec=%f", &made, &us); err != nil || made != calls {
			b.Fatalf("%v calls, %v in %q, want %d", made, err, stats, calls)
		}
		least = min(least, us/calls)
	}
	return least
}
