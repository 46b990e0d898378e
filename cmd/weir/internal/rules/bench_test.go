package rules

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// many returns a file of n rules: a third each exact, prefix and CIDR, and up to 100 globs. Ten of them are those of many(10).
func many(n int) string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range n {
		match := []string{
			fmt.Sprintf("{method: GET, path: /exact/%d}", i),
			fmt.Sprintf("{path: \"/prefix/%d/*\"}", i),
			fmt.Sprintf("{client: 10.%d.%d.0/24}", i/256%256, i%256),
		}[i%3]
		if i%10 == 9 && i < 1000 {
			match = fmt.Sprintf("{host: \"*.glob%d.example.com\"}", i)
		}
		fmt.Fprintf(&b, "  - name: r%d\n    match: %s\n    key: client\n    limit: fixed window 1000000/366d\n", i, match)
	}
	return b.String()
}

// asking is a request, without the map of an Attributes, for there are millions.
type asking struct{ host, path, client string }

// Attribute returns an attribute of a GET request.
func (a *asking) Attribute(name string) (string, bool) {
	switch name {
	case "method":
		return "GET", true
	case "host":
		return a.host, true
	case "path":
		return a.path, true
	}
	return a.client, name == "client"
}

// million is the least number of keys that the benchmark decides about.
const million = 1_000_000

func askings() []asking {
	list := make([]asking, 2*million)
	for i := range list {
		list[i] = asking{
			[]string{"www.example.com", "a.glob9.example.com"}[i/4%2],
			[]string{"/exact/0", "/prefix/1/a", "/other/a/b", "/prefix/4/x"}[i%4],
			fmt.Sprintf("172.%d.%d.%d", 16+i>>16, i>>8&255, i&255),
		}
		if i/8%4 == 3 {
			list[i].client = fmt.Sprintf("10.0.2.%d", i&255)
		}
	}
	return list
}

// decider makes decisions by n rules.
type decider struct {
	config   *Config
	engine   *weir.Memory
	requests []asking
	next     int
	asked    int
	outcome  Outcome
}

// newDecider returns one that has decided on each request once.
func newDecider(b *testing.B, rules int, requests []asking) *decider {
	d := &decider{config: parsed(b, many(rules)), engine: weir.NewMemory(weir.MemoryOptions{MaxKeys: 4 * million}), requests: requests}
	d.window(b, len(requests))
	if keys := d.engine.Stats().Keys; keys < million {
		b.Fatalf("%d rules have decided about %d keys, want a million", rules, keys)
	}
	d.asked = 0
	return d
}

// window makes decisions and returns the time that they took.
func (d *decider) window(b *testing.B, decisions int) time.Duration {
	start := time.Now()
	for range decisions {
		d.config.Decide(&d.requests[d.next%len(d.requests)], 1, &d.outcome)
		d.next += 7919 // a prime, so that all have their turn
		if d.outcome.Verdict != Ask {
			continue
		}
		d.asked += len(d.outcome.Requests)
		if _, err := d.engine.Take(context.Background(), d.outcome.Requests...); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}

// BenchmarkDecide decides by ten rules and by 10,000 in turns, on more than a million keys. The quickest windows of each are compared,
// because other programs only ever make a window longer.
func BenchmarkDecide(b *testing.B) {
	requests := askings()
	few, many := newDecider(b, 10, requests), newDecider(b, 10_000, requests)
	const decisions = 500
	least := [2]time.Duration{time.Hour, time.Hour}
	deciders := [2]*decider{few, many}
	for turn := 0; b.Loop(); turn++ {
		for n := range deciders {
			i := (turn + n) % 2 // the second one finds the requests in the caches
			least[i] = min(least[i], deciders[i].window(b, decisions))
		}
	}
	if few.asked != many.asked || few.asked == 0 {
		b.Fatalf("ten rules asked for %d limits, and 10,000 for %d, want the same", few.asked, many.asked)
	}
	for i, unit := range []string{"ns/decision-10-rules", "ns/decision-10000-rules"} {
		b.ReportMetric(float64(least[i])/decisions, unit)
	}
	b.ReportMetric(float64(least[1])/float64(least[0]), "ratio")
	b.ReportMetric(float64(few.asked)/float64(b.N*decisions), "limits/decision")
	b.ReportMetric(float64(many.engine.Stats().Keys), "keys")
}
