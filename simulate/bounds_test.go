package simulate

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/accesslog"
)

func TestATrafficSaysWhereItsMemoryCuts(t *testing.T) {
	traffic := NewTraffic(mustKey(t, "key"))
	traffic.mostEvents, traffic.mostKeys = 4, 2
	log := strings.ReplaceAll(`aabcab`, "", "\n")
	var lines strings.Builder
	for _, key := range strings.Fields(log) {
		lines.WriteString(`{"time":1,"key":"` + key + `"}` + "\n")
	}
	if err := traffic.ReadLog("log", strings.NewReader(lines.String())); err != nil {
		t.Fatal(err)
	}
	report, err := traffic.Replay([]Candidate{mustCandidate(t, "9/s")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Reason{{Reason: whyTooMany, Lines: 1}, {Reason: whyTooMixed, Lines: 1}}
	if report.Limits[0].Admitted != 4 || report.Keys != 2 || !slices.Equal(report.Reasons, want) {
		t.Errorf("got %d admitted, %d keys, %v, want 4, 2, %v", report.Limits[0].Admitted, report.Keys, report.Reasons, want)
	}
}

func TestATrafficDropsWhatIsOutsideOnceTheEndIsKnown(t *testing.T) {
	since, err := accesslog.ParseBound("10s")
	if err != nil {
		t.Fatal(err)
	}
	logs, err := accesslog.NewReader(accesslog.Options{Since: since})
	if err != nil {
		t.Fatal(err)
	}
	traffic := NewTrafficOf(logs, mustKey(t, "key"))
	log := `{"time":100,"key":"a"}` + "\n" + `{"time":95,"key":"b"}` + "\n" + `{"time":105,"key":"b"}` + "\n" + `{"time":110,"key":"c"}`
	if err := traffic.ReadLog("log", strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	report, err := traffic.Replay([]Candidate{mustCandidate(t, "9/s")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Lines != 4 || report.LeftOut != 1 || report.Keys != 3 || report.First.Unix() != 100 || report.Limits[0].Admitted != 3 {
		t.Errorf("got %d lines, %d left out, %d keys from %d, want 4, 1, 3 from 100", report.Lines, report.LeftOut, report.Keys, report.First.Unix())
	}
}
