package backtest_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/replay"
)

// The refusals of all rules together are those of its rules, and the timelines of its worst clients are theirs, whatever a recording
// leaves undecided.
func TestTheReportsOfAFileAddUp(t *testing.T) {
	drawn, undecided := 0, int64(0)
	for seed := range randtest.Seeds(t, 60, 15) {
		random := randtest.New(seed)
		text := randomFile(random)
		config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(text)})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		d := newDaemon(config)
		var log strings.Builder
		now := time.Date(2026, 11, 27, 23, 59, 30, 0, time.UTC).UnixNano()
		for range 150 {
			now += 1 + random.Int64N(int64(time.Second))
			a := randomAsked(random, now)
			d.ask(t, a)
			log.WriteString(a.logged())
		}
		if report, err := trafficOf(t, config, log.String(), "", 0).Report(backtest.Options{}); err != nil || report.Customers == 0 && !reflect.DeepEqual(report.Busiest, busiest(t, log.String())) {
			t.Fatalf("seed %d: the most that clients ask for is %+v, want %+v; %v", seed, report.Busiest, busiest(t, log.String()), err)
		}
		for _, log := range []string{log.String(), d.recorded.String()} {
			report, err := trafficOf(t, config, log, "", 0).Report(backtest.Options{Top: 5, Timelines: 3})
			if err != nil || len(report.Limits) == 0 {
				continue // nothing was recorded
			}
			whole, inAll := report.Limits[0], int64(0)
			for _, l := range report.Limits[1:] {
				inAll += l.InAll
			}
			if inAll != whole.Refused || len(whole.Timelines) != min(3, len(whole.WorstKeys)) {
				t.Fatalf("seed %d: the rules refuse %d requests and all together %d; %d timelines of %d clients\n%s", seed, inAll, whole.Refused, len(whole.Timelines), len(whole.WorstKeys), text)
			}
			for i, line := range whole.Timelines {
				if k := whole.WorstKeys[i]; sum(line.Admitted) != k.Admitted || sum(line.Refused) != k.Refused {
					t.Fatalf("seed %d: the timeline of %+v has %d admitted and %d refused\n%s", seed, k, sum(line.Admitted), sum(line.Refused), text)
				}
				drawn++
			}
			undecided += whole.Undecided
		}
	}
	if drawn == 0 || undecided == 0 {
		t.Errorf("%d timelines, %d undecided requests, want some", drawn, undecided)
	}
}

// busiest returns the most that clients ask for in a replay that tries a limit.
func busiest(t *testing.T, log string) []replay.Busiest {
	key, err := replay.ParseKey("ip")
	if err != nil {
		t.Fatal(err)
	}
	traffic := replay.NewTraffic(nil, key)
	if err := traffic.ReadLog("log", strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	report, err := traffic.Replay(nil, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return report.Busiest
}

func sum(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}
