package replay

import (
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

// filled returns traffic with one event.
func filled(t *testing.T, log string) *Traffic {
	t.Helper()
	return filledBy(t, mustKey(t, "key"), log)
}

func TestWhatNobodyFilledInIsAnErrorAndNoPanic(t *testing.T) {
	events := filled(t, `{"ts":1,"key":"a"}`+"\n")
	for name, do := range map[string]func() error{
		"read into zero traffic": func() error {
			var traffic Traffic
			traffic.CostFrom("c")
			return traffic.ReadLog("log", strings.NewReader(""))
		},
		"read nothing":              func() error { return NewTraffic(nil, Key{}).ReadLog("log", nil) },
		"read without a key":        func() error { return NewTraffic(nil, Key{}).ReadLog("log", strings.NewReader("")) },
		"replay the zero candidate": func() error { _, err := events.Replay([]Candidate{{}}, Options{}); return err },
		"replay a nil limit": func() error {
			_, err := events.Replay([]Candidate{{Limits: make([]weir.Limit, 1)}}, Options{})
			return err
		},
		"the zero target": func() error { _, err := events.Suggest(Target{}, nil); return err },
	} {
		t.Run(name, func(t *testing.T) {
			if err := do(); err == nil || !strings.HasPrefix(err.Error(), "replay: ") && !strings.HasPrefix(err.Error(), "weir: ") {
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
		if c.Rate() != (weir.Rate{}) {
			t.Errorf("a candidate of no limits has the rate %v", c.Rate())
		}
	}
	if text := (Key{}).String() + (Target{}).String(); text != "" {
		t.Errorf("zero values have the text %q", text)
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
	traffic := NewTraffic(nil, key)
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
