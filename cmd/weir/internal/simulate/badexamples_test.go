package simulate

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/simulate"
)

// last returns the report of the longest classic phase: 1000 requests at 100 per second.
func last(t *testing.T, s simulate.Subject) simulate.PhaseReport {
	t.Helper()
	reports, err := simulate.ClassicDriver().Run(s)
	if err != nil {
		t.Fatal(err)
	}
	return reports[len(reports)-1]
}

func find(t *testing.T, subjects []simulate.Subject, name string) simulate.Subject {
	t.Helper()
	for _, s := range subjects {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no subject %q", name)
	return simulate.Subject{}
}

func TestBadExamplesMissTheRate(t *testing.T) {
	subjects := badExamples(classicRate)
	for _, test := range []struct {
		name  string
		rate  float64
		ended bool
	}{
		{"bucket refilled by a timer", 1000 / 109.375, true},
		{"bucket refilled by a thread", 1000 / 101.0, true},
		{"semaphore released by a thread", 10 / 1.001, true},
		{"fixed sleep, too slow", 1000 / 120.0, true},
		{"fixed sleep, too fast", 1000 / 90.0, true},
		{"interval of 1000/max milliseconds", 10, true},
		{"lazy refill at each call", 0, false},
		{"lazy refill that drops fractions", 10, true}, // the retries come each 10 ms, so a unit has no fraction
		{"sliding window that counts refusals", 0, false},
	} {
		r := last(t, find(t, subjects, test.name))
		got := 0.0
		if r.Ended {
			got = (float64(r.Admitted) - 10) / r.Seconds
		}
		if r.Ended != test.ended || math.Abs(got-test.rate) > test.rate*0.015 {
			t.Errorf("%s: %.3f/s after the burst, ended %v, want %.3f/s, %v", test.name, got, r.Ended, test.rate, test.ended)
		}
	}
	if len(subjects) != 9 {
		t.Errorf("%d bad examples, want 9: add a row", len(subjects))
	}
	if most := last(t, find(t, subjects, "semaphore released by a thread")).Most; most < 15 {
		t.Errorf("at most %d in a second through the semaphore, want a second burst", most)
	}
}

// At 10/s polled every 190 ms, 0.9 of a unit is dropped each time. Polled every 10 ms, the refill that keeps its time
// until a unit has come is right, and the other one never refills. At 300/s an interval of 3.33 ms becomes 3 ms.
func TestRoundingFaultsMissWhatIsDue(t *testing.T) {
	got, err := RoundingFaults()
	if err != nil {
		t.Fatal(err)
	}
	want := []PollReport{
		{"lazy refill at each call", 10, 10 * time.Millisecond, 100 * time.Second, 10, 1009},
		{"lazy refill at each call", 10, 190 * time.Millisecond, 190 * time.Second, 1009, 1908},
		{"lazy refill that drops fractions", 10, 10 * time.Millisecond, 100 * time.Second, 1009, 1009},
		{"lazy refill that drops fractions", 10, 190 * time.Millisecond, 190 * time.Second, 1009, 1908},
		{"interval of 1000/max milliseconds", 300, time.Millisecond, 9 * time.Second, 3000, 2701},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// kindsOf finds the names of all limits in the error of an unreadable one.
var kindsOf = regexp.MustCompile(`\((.+)\)`)

func TestEveryLimitWithARateIsDriven(t *testing.T) {
	limits, err := classicLimits()
	if err != nil {
		t.Fatal(err)
	}
	_, err = weir.ParseLimit("nonsense")
	list := kindsOf.FindStringSubmatch(err.Error())
	if list == nil {
		t.Fatalf("%v lists no limits", err)
	}
	var names strings.Builder
	for _, s := range limits {
		names.WriteString(s.Name + "\n")
	}
	for kind := range strings.SplitSeq(list[1], ", ") {
		without := kind == "concurrency" || kind == "quota" || kind == "ban" || kind == "unlimited" || kind == "deny all"
		if !without && !strings.Contains(names.String(), kind) {
			t.Errorf("the classic driver has no %s", kind)
		}
	}
}
