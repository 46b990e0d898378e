package rulefiles

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// many returns a file of n rules: a third each exact, prefix and CIDR, and up to 100 globs.
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

// BenchmarkReload reloads 10,000 rules, and reports the longest of the decisions that were made meanwhile.
func BenchmarkReload(b *testing.B) {
	file := filepath.Join(b.TempDir(), "weir.yaml")
	text := many(10_000)
	write(b, file, text)
	s := opened(b, file)
	done, slowest := make(chan bool), make(chan time.Duration)
	go func() {
		var o rules.Outcome
		longest := time.Duration(0)
		for {
			select {
			case <-done:
				slowest <- longest
				return
			case <-time.After(time.Millisecond):
			}
			start := time.Now()
			s.Config().Decide(rules.Attributes{"path": "/exact/0", "method": "GET", "client": "10.0.0.1"}, 1, &o)
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
