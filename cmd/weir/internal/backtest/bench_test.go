package backtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/accesslog"
	"github.com/weirflow/weir/internal/randtest"
)

// benchRules are ten rules, of which two to four decide a request.
const benchRules = `rules:
  - {name: office, match: {client: 172.16.0.0/12}, unlimited: true}
  - {name: banned, match: {client: 198.51.100.0/24}, deny: true}
  - {name: login, match: {method: POST, path: /login}, key: client, limit: 5/m}
  - {name: search, match: {path: /search}, key: client, limit: 30/m}
  - {name: api, match: {path: /api/*}, key: client, limit: 10/s}
  - {name: write, match: {method: [POST, PUT]}, key: client, limit: 60/m}
  - {name: bots, match: {header.user-agent: "~*bot"}, key: client, limit: 1/s}
  - {name: static, match: {path: /static/*}, key: client, limit: 50/s}
  - {name: client, match: any, key: client, limit: token bucket 5/s burst 100}
  - {name: all, match: any, limit: 20000/s}
`

// BenchmarkRulesOnALog reads, decides and judges a log of 500,000 lines in whole seconds, of 100,000 clients. One operation is one line.
func BenchmarkRulesOnALog(b *testing.B) {
	const lines, clients = 500_000, 100_000
	random := randtest.New(1)
	var log strings.Builder
	start := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	for i := range lines {
		n := random.IntN(clients)
		fmt.Fprintf(&log, "10.%d.%d.%d - - [%s] \"%s %s HTTP/1.1\" 200 512 \"-\" \"Mozilla/5.0 (X11; Linux x86_64)\"\n", n>>16, n>>8&255, n&255,
			start.Add(time.Duration(i)*time.Second/200).Format("02/Jan/2006:15:04:05 -0700"), pick(random, "GET", "GET", "GET", "POST"),
			pick(random, "/", "/login", "/search?q=a", "/api/v1/things?page=2", "/static/a.css"))
	}
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(benchRules)})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for done := 0; done < b.N; done += lines {
		reader, err := accesslog.NewReader(accesslog.Options{})
		if err != nil {
			b.Fatal(err)
		}
		traffic := backtest.New(backtest.File{Name: "weir.yaml", Config: config})
		if err := reader.Read("access.log", strings.NewReader(log.String()), backtest.NewLogs(traffic, reader, backtest.DefaultLongest).Entry); err != nil {
			b.Fatal(err)
		}
		report, err := traffic.Report(backtest.Options{Top: 10})
		if err != nil {
			b.Fatal(err)
		}
		if got := report.Limits[0].Admitted + report.Limits[0].Refused; got != lines || report.Keys < clients*9/10 {
			b.Fatalf("%d requests of %d clients are decided, want %d of about %d", got, report.Keys, lines, clients)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}
