package rules

import (
	"context"
	"fmt"
	"path/filepath"
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
		fmt.Fprintf(&b, "  - name: r%d\n    match: %s\n    key: client\n    limit: token bucket 10/s burst 20\n", i, match)
	}
	return b.String()
}

// decider makes decisions by n rules.
type decider struct {
	config   *Config
	engine   *weir.Memory
	requests []Attributes
	next     int
	asked    int
	outcome  Outcome
}

func newDecider(b *testing.B, rules int) *decider {
	d := &decider{config: parsed(b, many(rules)), engine: weir.NewMemory(weir.MemoryOptions{}), requests: make([]Attributes, 1<<18)}
	for i := range d.requests {
		d.requests[i] = Attributes{
			"method": "GET", "host": []string{"www.example.com", "a.glob9.example.com"}[i/4%2],
			"path":   []string{"/exact/0", "/prefix/1/a", "/other/a/b", "/prefix/4/x"}[i%4],
			"client": fmt.Sprintf("%s.%d.%d", []string{"172.16", "10.0"}[i/8%2&(i/16%2)], []int{i >> 8 & 255, 2}[i/8%2&(i/16%2)], i&255),
		}
	}
	return d
}

// window makes decisions and returns the time that they took.
func (d *decider) window(b *testing.B, decisions int) time.Duration {
	start := time.Now()
	for range decisions {
		d.config.Decide(d.requests[d.next%len(d.requests)], 1, &d.outcome)
		d.next += 7919
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

// BenchmarkDecide decides by ten rules and by 10,000 in turns, on 200,000 keys. The quickest windows of each are compared, because other
// programs only ever make a window longer.
func BenchmarkDecide(b *testing.B) {
	few, many := newDecider(b, 10), newDecider(b, 10_000)
	const decisions = 500
	least := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		for i, d := range []*decider{few, many} {
			least[i] = min(least[i], d.window(b, decisions))
		}
	}
	for i, unit := range []string{"ns/decision-10-rules", "ns/decision-10000-rules"} {
		b.ReportMetric(float64(least[i])/decisions, unit)
	}
	b.ReportMetric(float64(least[1])/float64(least[0]), "ratio")
	b.ReportMetric(float64(few.asked)/float64(b.N*decisions), "limits-of-10")
	b.ReportMetric(float64(many.asked)/float64(b.N*decisions), "limits-of-10000")
}

// BenchmarkReload reloads 10,000 rules, and reports the longest of the decisions that were made meanwhile.
func BenchmarkReload(b *testing.B) {
	file := filepath.Join(b.TempDir(), "weir.yaml")
	text := many(10_000)
	write(b, file, text)
	s := opened(b, file)
	done, slowest := make(chan bool), make(chan time.Duration)
	go func() {
		var o Outcome
		longest := time.Duration(0)
		for {
			select {
			case <-done:
				slowest <- longest
				return
			case <-time.After(time.Millisecond):
			}
			start := time.Now()
			s.Config().Decide(Attributes{"path": "/exact/0", "method": "GET", "client": "10.0.0.1"}, 1, &o)
			longest = max(longest, time.Since(start))
		}
	}()
	for i := 0; b.Loop(); i++ {
		write(b, file, text+fmt.Sprintf("# %d\n", i))
		if r := s.Reload(); r.Err != nil {
			b.Fatal(r.Err)
		}
	}
	close(done)
	b.ReportMetric(float64((<-slowest).Microseconds()), "slowest-decision-µs")
}
