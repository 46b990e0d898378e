package accesslog

import (
	"strings"
	"testing"
)

func TestADashIsAKeyOfARecordingAndNoneOfOtherLogs(t *testing.T) {
	for line, want := range map[string]bool{
		`{"time":"2023-10-11T22:14:11Z","rule":"r","key":"-","cost":1,"allowed":true}`: true,
		`{"time":"2023-10-11T22:14:11Z","key":"-"}`:                                    false,
	} {
		r, err := NewReader(Options{})
		if err != nil {
			t.Fatal(err)
		}
		key := r.Want("key")
		err = r.Read("log", strings.NewReader(line), func(e *Entry) (string, error) {
			if value, ok := e.Value(key); string(value) != "-" || ok != want {
				t.Errorf("%s: got key %q, %t, want a dash, %t", line, value, ok, want)
			}
			return "", nil
		})
		if err != nil || r.Rejected() > 0 {
			t.Fatal(err, r.Reasons())
		}
	}
}
