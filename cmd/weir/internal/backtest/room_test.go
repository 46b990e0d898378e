package backtest

import (
	"fmt"
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

// Outcomes that differ only in their clients share all but the numbers of their keys.
func TestOutcomesThatDifferInTheirKeysShareTheRest(t *testing.T) {
	config := configOf(t, `rules: [{name: a, match: {path: /a}, key: client, limit: 9/s}, {name: b, match: {method: POST}, key: client, limit: 9/s},
		{name: c, match: any, key: client, limit: 9/m}, {name: d, match: any, limit: 9999/s}]`)
	const clients = 1000
	var lines []Line
	for i := range clients {
		client := fmt.Sprintf("10.0.%d.%d", i>>8, i&255)
		for _, request := range [][2]string{{"GET", "/a"}, {"POST", "/a"}, {"GET", "/b"}, {"POST", "/b"}} {
			lines = append(lines, Line{Client: []byte(client), Request: known{map[string]string{"client": client, "method": request[0], "path": request[1]}}})
		}
	}
	got := testing.AllocsPerRun(1, func() {
		traffic := New(File{Name: "weir.yaml", Config: config})
		for i := range lines {
			if err := traffic.Add(&lines[i]); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got > float64(2*len(lines)) { // the normal form of each path, the text of each client, and the tables of all
		t.Errorf("%.0f allocations for %d requests of %d clients", got, len(lines), clients)
	}
}
