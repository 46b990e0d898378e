package redislimit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
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

// BenchmarkScript measures the time that a server spends in the script, by its own statistics, for calls of known keys
// under rules of one limit to three. A figure is that of the fastest window, and beside it is the ratio to one limit.
func BenchmarkScript(b *testing.B) {
	server := redistest.Start(b)
	server.Do("SCRIPT", "LOAD", theScript().source)
	for _, limit := range []struct{ name, admits, refuses string }{
		{"token bucket", "token bucket %d/s burst 1000000", "token bucket 1/%ds burst 1"},
		{"fixed window", "fixed window 1000000000/%ds", "fixed window 1/%ds"},
	} {
		for _, outcome := range []string{"admitted", "refused"} {
			for _, keys := range []int{1, 2, 8, 100} {
				one := 0.0
				for limits := 1; limits <= 3; limits++ {
					format := map[string]string{"admitted": limit.admits, "refused": limit.refuses}[outcome]
					var texts []string
					for i := range limits {
						texts = append(texts, fmt.Sprintf(format, 2_000_000+i))
					}
					name := fmt.Sprintf("%s/%s/%d keys/%d limits", limit.name, outcome, keys, limits)
					b.Run(name, func(b *testing.B) {
						command := commandOf(b, server, strings.NewReplacer(" ", "-", "/", "-").Replace(name)+"="+strings.Join(texts, " and "), keys, outcome == "admitted")
						least := scriptTime(b, server, command)
						if limits == 1 {
							one = least
						}
						b.ReportMetric(0, "ns/op")
						b.ReportMetric(least, "us/call")
						b.ReportMetric(least/one, "x/limit")
					})
				}
			}
		}
	}
}

// commandOf returns the command by which an engine decides on known keys.
func commandOf(b *testing.B, server *redistest.Server, text string, keys int, admitted bool) []string {
	b.Helper()
	rule, err := weir.ParseRule(text)
	if err != nil {
		b.Fatal(err)
	}
	sender := &recordingSender{server: server}
	engine, err := NewWith(sender, Options{})
	if err != nil {
		b.Fatal(err)
	}
	requests, results := make([]weir.Request, keys), make([]weir.Result, keys)
	for i := range requests {
		requests[i] = rule.For(fmt.Sprint("user-", i), 1)
	}
	for range 2 {
		if err := engine.Each(b.Context(), weir.Calls(weir.OpTake, requests...), results); err != nil {
			b.Fatal(err)
		}
	}
	for _, r := range results {
		if r.Err != nil || r.Decision.Allowed != admitted {
			b.Fatalf("%s: %+v", text, r)
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
