package replay

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/accesslog"
	"github.com/weirflow/weir/internal/randtest"
)

func TestATrafficSaysWhereItsMemoryCuts(t *testing.T) {
	traffic := NewTraffic(nil, mustKey(t, "key"))
	traffic.mostEvents, traffic.mostKeys = 4, 2
	log := strings.ReplaceAll(`aabcab`, "", "\n")
	var lines strings.Builder
	for _, key := range strings.Fields(log) {
		lines.WriteString(`{"ts":1,"key":"` + key + `"}` + "\n")
	}
	if err := traffic.ReadLog("log", strings.NewReader(lines.String())); err != nil {
		t.Fatal(err)
	}
	report, err := traffic.Replay([]Candidate{mustCandidate(t, "9/s")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []accesslog.Reason{{Reason: whyTooMany, Lines: 1}, {Reason: whyTooMixed, Lines: 1}}
	if report.Limits[0].Admitted != 4 || report.Keys != 2 || !slices.Equal(report.Reasons, want) {
		t.Errorf("got %d admitted, %d keys, %v, want 4, 2, %v", report.Limits[0].Admitted, report.Keys, report.Reasons, want)
	}
}

// cutLog is a log of which only the time between two durations back from its end counts. An empty duration is no bound.
func cutLog(t *testing.T, log, since, until string) *Traffic {
	t.Helper()
	var options accesslog.Options
	for to, text := range map[*accesslog.Bound]string{&options.Since: since, &options.Until: until} {
		var err error
		if *to, err = accesslog.ParseBound(text); text != "" && err != nil {
			t.Fatal(err)
		}
	}
	logs, err := accesslog.NewReader(options)
	if err != nil {
		t.Fatal(err)
	}
	traffic := NewTraffic(logs, mustKey(t, "key"))
	if err := traffic.ReadLog("log", strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	return traffic
}

func TestATrafficDropsWhatIsOutsideOnceTheEndIsKnown(t *testing.T) {
	log := `{"ts":100,"key":"a"}` + "\n" + `{"ts":95,"key":"b"}` + "\n" + `{"ts":105,"key":"b"}` + "\n" + `{"ts":110,"key":"c"}`
	traffic := cutLog(t, log, "10s", "")
	report, err := traffic.Replay([]Candidate{mustCandidate(t, "9/s")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Lines != 4 || report.LeftOut != 1 || report.Keys != 3 || report.First.Unix() != 100 || report.Limits[0].Admitted != 3 {
		t.Errorf("got %d lines, %d left out, %d keys from %d, want 4, 1, 3 from 100", report.Lines, report.LeftOut, report.Keys, report.First.Unix())
	}
}

// A bound may leave any part of a log, also nothing.
func TestSuggestionsForAPartOfALogAreThoseForALogOfThatPart(t *testing.T) {
	targets := []string{"refuse 1%", "refuse 10% of clients", "spare 99%", "at most 2/s in all"}
	for seed := range randtest.Seeds(t, 60, 20) {
		random := rand.New(rand.NewPCG(seed, 11))
		since, until := 1+random.IntN(120), random.IntN(120)
		last := 1_500_000_000 + random.IntN(120)
		var whole, part strings.Builder
		for n := range random.IntN(30) {
			second := last - random.IntN(100)
			if n == 0 {
				second = last
			}
			line := fmt.Sprintf(`{"ts":%d,"key":"%c"}`+"\n", second, 'a'+random.IntN(3))
			whole.WriteString(line)
			if second >= last-since && second < last-until {
				part.WriteString(line)
			}
		}
		target := mustTarget(t, targets[random.IntN(len(targets))])
		got, err := cutLog(t, whole.String(), fmt.Sprint(since, "s"), fmt.Sprint(until, "s")).Suggest(target, nil)
		want, failed := cutLog(t, part.String(), "", "").Suggest(target, nil)
		if got.LeftOut != got.Lines-got.Requests || got.Requests != want.Lines {
			t.Errorf("%d lines, %d left out, %d requests, want %d", got.Lines, got.LeftOut, got.Requests, want.Lines)
		}
		got.Reading, want.Reading = Reading{}, Reading{}
		if err != nil || failed != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s from %ds to %ds before the end: %+v, %v, want %+v, %v", target.text, since, until, got, err, want, failed)
		}
	}
}
