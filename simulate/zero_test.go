package simulate

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestWhatNobodyFilledInIsAnErrorAndNoPanic(t *testing.T) {
	minute := Scenario{Length: time.Minute}
	logs, constant := mustPattern(t, "log a.log"), mustPattern(t, "constant 1/s")
	for name, do := range map[string]func() error{
		"drive the zero subject":   func() error { _, err := ClassicDriver().Run(Subject{}); return err },
		"the zero driver":          func() error { _, err := Driver{}.Run(); return err },
		"drive without end":        func() error { d := ClassicDriver(); d.Patience = math.MaxInt64; _, err := d.Run(); return err },
		"the subject of no limit":  func() error { _, err := NewSubject(nil); return err },
		"read nothing":             func() error { _, _, err := logs.ReadLog("a.log", "ip", nil); return err },
		"read another log":         func() error { _, _, err := logs.ReadLog("b.log", "ip", strings.NewReader("")); return err },
		"read without a key":       func() error { _, _, err := logs.ReadLog("a.log", "", strings.NewReader("")); return err },
		"compare an unread log":    func() error { _, err := logs.Compare([]string{"1/s"}, minute); return err },
		"compare in no scenario":   func() error { _, err := constant.Compare([]string{"1/s"}, Scenario{}); return err },
		"compare no limit":         func() error { _, err := constant.Compare([]string{""}, minute); return err },
		"compare the zero pattern": func() error { _, err := Pattern{}.Compare([]string{"1/s"}, minute); return err },
	} {
		t.Run(name, func(t *testing.T) {
			if err := do(); err == nil || !strings.HasPrefix(err.Error(), "simulate: ") && !strings.HasPrefix(err.Error(), "weir: ") {
				t.Errorf("got error %v, want one of the package", err)
			}
		})
	}
}

// A log of which no line counts is read, and makes no traffic.
func TestALogOfWhichNoLineCountsIsNoTraffic(t *testing.T) {
	p := mustPattern(t, "log a.log")
	counted, left, err := p.ReadLog("a.log", "ip", strings.NewReader("no time\n"))
	if counted != 0 || len(left) != 1 || left[0].Lines != 1 || err != nil {
		t.Errorf("%d lines count, %v are left out, %v, want none, one reason and no error", counted, left, err)
	}
	if _, err := p.Compare([]string{"1/s"}, Scenario{Length: time.Minute}); err == nil || !strings.Contains(err.Error(), "no line of the log a.log counts") {
		t.Errorf("comparing it gives %v, want that no line counts", err)
	}
}

// The zero values that mean something do not fail.
func TestZeroValuesThatMeanNothingAreEmpty(t *testing.T) {
	if (Pattern{}).String() != "" || (Pattern{}).length() != 0 || len((Pattern{}).Logs()) != 0 {
		t.Error("the zero pattern has a text, a length or a log")
	}
}

func mustPattern(t *testing.T, text string) Pattern {
	t.Helper()
	p, err := ParsePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// readLog reads a log whose clients are the values of a key.
func (p Pattern) readLog(t *testing.T, name, key, log string) {
	t.Helper()
	if _, _, err := p.ReadLog(name, key, strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
}
