package backtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/accesslog"
)

func TestALineOfARecordingCountsOrSaysWhyNot(t *testing.T) {
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte("rules: [{name: r, match: {path: /a}, key: client, limit: 9/s}]")})
	if err != nil {
		t.Fatal(err)
	}
	const noCost = "is of a recording, and has no cost that is a number from 0"
	for _, c := range []struct{ key, cost, why string }{
		{`"a"`, "1", ""}, {`"-"`, "0", ""}, {`""`, "1", ""}, {`"-"`, "-1", noCost}, {`"a"`, `"-"`, noCost}, {`"a"`, "1.5", noCost}, {`"a"`, "null", noCost},
		{`"a"`, `1,"cost":9`, "is of a recording, and has a field twice"}, {`"a"`, `1,"rule":"s"`, "is of a recording, and has a field twice"},
	} {
		reader, err := accesslog.NewReader(accesslog.Options{Format: "record"})
		if err != nil {
			t.Fatal(err)
		}
		traffic := New(File{Name: "weir.yaml", Config: config})
		line := fmt.Sprintf(`{"time":"2026-11-27T08:00:00Z","rule":"r","key":%s,"cost":%s,"allowed":true}`, c.key, c.cost)
		if err := reader.Read("log", strings.NewReader(line), NewLogs(traffic, reader, 0).Entry); err != nil {
			t.Fatal(err)
		}
		report, err := traffic.Report(Options{})
		why := ""
		for _, r := range reader.Reasons() {
			why = r.Reason
		}
		if why != c.why || c.why == "" && (err != nil || report.Limits[0].Admitted != 1) {
			t.Errorf("%s: got reason %q, %+v, %v, want reason %q", line, why, report.Limits, err, c.why)
		}
	}
}
