package simulate

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// filled returns traffic with one event.
func filled(t *testing.T, log string) *Traffic {
	t.Helper()
	return filledBy(t, mustKey(t, "key"), log)
}

func TestWhatNobodyFilledInIsAnErrorAndNoPanic(t *testing.T) {
	logs, err := ParsePattern("log a.log")
	if err != nil {
		t.Fatal(err)
	}
	events := filled(t, `{"ts":1,"key":"a"}`+"\n")
	bucket := mustCandidate(t, "1/s")
	minute := Scenario{Length: time.Minute}
	constant, err := ParsePattern("constant 1/s")
	if err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"drive the zero subject":     func() error { _, err := ClassicDriver().Run(Subject{}); return err },
		"the zero driver":            func() error { _, err := Driver{}.Run(); return err },
		"drive without end":          func() error { d := ClassicDriver(); d.Patience = math.MaxInt64; _, err := d.Run(); return err },
		"the subject of no limit":    func() error { _, err := NewSubject(nil); return err },
		"the throttle of no warm up": func() error { _, _, err := ThrottleOf(weir.WarmUp{}); return err },
		"read into zero traffic": func() error {
			var traffic Traffic
			traffic.CostFrom("c")
			return traffic.ReadLog("log", strings.NewReader(""))
		},
		"read nothing":              func() error { return NewTraffic(Key{}).ReadLog("log", nil) },
		"read without a key":        func() error { return NewTraffic(Key{}).ReadLog("log", strings.NewReader("")) },
		"replay the zero candidate": func() error { _, err := events.Replay([]Candidate{{}}, Options{}); return err },
		"replay a nil limit": func() error {
			_, err := events.Replay([]Candidate{{Limits: make([]weir.Limit, 1)}}, Options{})
			return err
		},
		"use no traffic":             func() error { return logs.UseLog("a.log", nil) },
		"compare in no scenario":     func() error { _, err := constant.Compare([]Candidate{bucket}, Scenario{}); return err },
		"compare the zero candidate": func() error { _, err := constant.Compare([]Candidate{{}}, minute); return err },
		"compare a nil limit": func() error {
			_, err := constant.Compare([]Candidate{{Limits: make([]weir.Limit, 1)}}, minute)
			return err
		},
		"compare the zero pattern": func() error { _, err := Pattern{}.Compare([]Candidate{bucket}, minute); return err },
		"the zero target":          func() error { _, err := events.Suggest(Target{}, nil); return err },
	} {
		t.Run(name, func(t *testing.T) {
			if err := do(); err == nil || !strings.HasPrefix(err.Error(), "simulate: ") && !strings.HasPrefix(err.Error(), "weir: ") {
				t.Errorf("got error %v, want one of the package", err)
			}
		})
	}
}

// The zero values that mean something do not fail.
func TestZeroValuesThatMeanNothingAreEmpty(t *testing.T) {
	var traffic Traffic
	report, err := traffic.Replay([]Candidate{mustCandidate(t, "1/s")}, Options{})
	if err != nil || report.Keys != 0 || len(traffic.Samples()) != 0 {
		t.Errorf("zero traffic replays as %+v, %v, want nothing", report, err)
	}
	for _, c := range []Candidate{{}, {Limits: make([]weir.Limit, 2)}} {
		if _, ok, err := c.Permits(); ok || err != nil || c.Rate() != (weir.Rate{}) {
			t.Errorf("a candidate of no limits has permits or a rate, %v", err)
		}
	}
	if text := (Key{}).String() + (Pattern{}).String() + (Target{}).String(); text != "" {
		t.Errorf("zero values have the text %q", text)
	}
	if (Pattern{}).Length() != 0 || len((Pattern{}).Logs()) != 0 {
		t.Error("the zero pattern has a length or a log")
	}
}

func mustCandidate(t *testing.T, text string) Candidate {
	t.Helper()
	c, err := ParseCandidate(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func filledBy(t *testing.T, key Key, log string) *Traffic {
	t.Helper()
	traffic := NewTraffic(key)
	if err := traffic.ReadLog("log", strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	return traffic
}

func mustKey(t testing.TB, texts ...string) Key {
	t.Helper()
	key, err := ParseKey(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
