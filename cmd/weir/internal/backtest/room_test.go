package backtest

import (
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/accesslog"
)

func TestAReplayOfRulesSaysWhereItsMemoryCuts(t *testing.T) {
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte("rules: [{name: r, match: {path: /a}, key: client, limit: 9/s}]")})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		events, outcomes int
		why              string
	}{{4, 100, whyTooMany}, {100, 4, whyTooMixed}} {
		reader, err := accesslog.NewReader(accesslog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		traffic := New(File{Name: "weir.yaml", Config: config})
		traffic.mostEvents, traffic.mostOutcomes = test.events, test.outcomes
		var log strings.Builder
		for i := range 9 {
			log.WriteString(`{"ts":1,"ip":"10.0.0.` + string(rune('1'+i)) + `","path":"/a"}` + "\n")
		}
		if err := reader.Read("log", strings.NewReader(log.String()), NewLogs(traffic, reader, 0).Entry); err != nil {
			t.Fatal(err)
		}
		report, err := traffic.Report(Options{})
		kept := int64(9 - reader.Rejected())
		if err != nil || kept == 9 || report.Limits[0].Admitted != kept || reader.Samples()[0].Reason != test.why {
			t.Errorf("%d of 9 are kept, %d admitted, because a line %q; %v", kept, report.Limits[0].Admitted, reader.Samples()[0].Reason, err)
		}
	}
}

func TestOnlyShortValuesOfLogsAreRemembered(t *testing.T) {
	s := source{texts: map[string]string{}}
	for _, size := range []int{0, 1, longestText, longestText + 1, 1 << 20} {
		if value := strings.Repeat("x", size); s.text([]byte(value)) != value {
			t.Errorf("a value of %d bytes is another", size)
		}
	}
	if len(s.texts) != 3 {
		t.Errorf("%d values are remembered, want the 3 short ones", len(s.texts))
	}
}
