package backtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/internal/accesslog"
)

// A rule that a replay cannot decide by as a daemon does is named with what it did instead.
func TestARuleThatIsReplayedOtherwiseIsNamed(t *testing.T) {
	config := configured(t, `
attributes: [units]
rules:
  - {name: tokens, match: {path: /*}, limit: fixed window 100/d, charge: after, cost: {from: units}}
  - {name: jobs, match: {path: /*}, limit: fixed window 1000/d, estimate: {quantile: p95, max: 100}}
  - {name: plain, match: {path: /*}, limit: 1000/d}
`)
	traffic := trafficOf(t, config, `{"time":"2026-11-27T08:00:00Z","ip":"192.0.2.1","uri":"/","units":"5"}`+"\n", "json", 0)
	report, err := traffic.Report(backtest.Options{Top: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := backtest.Text(report, 0, screen.Screen{})
	for rule, want := range map[string]bool{"tokens is charged after the work": true, "jobs estimates what a reservation holds": true, "plain ": false} {
		if strings.Contains(got, "replayed otherwise: "+rule) != want {
			t.Errorf("%s: %v is wrong in the report:\n%s", rule, !want, got)
		}
	}
}

// A log without addresses is replayed, unless a rule reads them.
func TestALogWithoutAddressesIsReplayedIfNoRuleReadsOne(t *testing.T) {
	log := ""
	for i := range 3 {
		log += fmt.Sprintf(`{"time":"2026-11-27T08:00:%02dZ","uri":"/"}`+"\n", i)
	}
	for file, want := range map[string]string{
		"rules: [{name: all, match: {path: /*}, limit: fixed window 2/d}]":              "0 rejected, 3 counted",
		"rules: [{name: all, match: {path: /*}, key: client, limit: fixed window 2/d}]": "3 rejected, 0 counted",
	} {
		reader, err := accesslog.NewReader(accesslog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		traffic := backtest.New(backtest.File{Name: "weir.yaml", Config: configured(t, file)})
		if err := reader.Read("log", strings.NewReader(log), backtest.NewLogs(traffic, reader, 0).Entry); err != nil {
			t.Fatal(err)
		}
		decisions, err := traffic.Decisions(0)
		if got := fmt.Sprintf("%d rejected, %d counted", reader.Rejected(), len(decisions)); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", file, got, err, want)
		}
		if len(decisions) == 3 && decisions[2].Allowed {
			t.Errorf("%s: the third request is admitted", file)
		}
	}
}

func configured(t *testing.T, text string) *rules.Config {
	t.Helper()
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return config
}
