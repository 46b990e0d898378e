package accesslog

import (
	"fmt"
	"strings"
	"testing"
)

// Beginnings of logs: lines that may name columns, and lines that follow.
var (
	headers = []string{"", "#Fields:", "#Fields: date time c-ip cs-uri-stem sc-status", "#Fields: date time x-edge-location c-ip", "#Fields: c-ip c-ip", "#Version: 1.0",
		"#", "timestamp;ip;path", "time,time", "\xef\xbb\xbf#Fields: time"}
	firstLines = []string{"", "x", "{}", "{", `{"log":"x"}`, "a b c d e", "1\t2\t3", `"`, "\x00", "2026-11-28 10:00:00 192.0.2.1 /a 200", "#Fields: date", "x\n#Fields: date time c-ip\n2026-11-28 10:00:00 192.0.2.1"}
)

// FuzzFormats checks that every format reads any log to its end, whatever its first lines are, and counts each line once.
func FuzzFormats(f *testing.F) {
	for _, name := range append(Formats(), "", "json time=a client=b.c path=d", "$time_local $remote_addr", "$remote_addr [$time_local] \"$request\"") {
		for _, header := range headers {
			for _, lines := range firstLines {
				f.Add(name, header, lines)
			}
		}
		for _, s := range samples {
			f.Add(name, "", s.log)
		}
	}
	f.Fuzz(func(t *testing.T, format, header, lines string) {
		r, err := NewReader(Options{Format: format})
		if err != nil {
			t.Skip(err)
		}
		slots := []Slot{r.Want("ip"), r.Want("client"), r.Want("path"), r.Want("uri"), r.Want("header.x-a"), r.Want("time")}
		if header != "" {
			header += "\n"
		}
		for _, log := range []string{header + lines, lines} { // the second log of a reader settles anew
			before := r.Lines() - r.Rejected()
			entries := int64(0)
			err = r.Read("log", strings.NewReader(log), func(e *Entry) (string, error) {
				entries++
				for _, slot := range slots {
					if _, ok := e.Value(slot); !ok && e.Why(slot) == "" {
						return "", fmt.Errorf("no reason to lack slot %d", slot)
					}
					e.Took()
				}
				return "", nil
			})
			if err != nil && !strings.HasPrefix(log, "\x1f\x8b") || before+entries+r.Rejected() != r.Lines() {
				t.Fatalf("format %q, log %q: got %d entries, and %d of %d lines rejected, %v", format, log, entries, r.Rejected(), r.Lines(), err)
			}
			if found := r.Found(); err == nil && strings.TrimPrefix(log, "\xef\xbb\xbf") != "" && len(found) == 0 {
				t.Fatalf("format %q, log %q: nothing says how it was read", format, log)
			}
		}
	})
}

// Lines before the first that names the columns are unparsed, with a reason, and the later ones count.
func TestColumnsThatAreNotNamedYet(t *testing.T) {
	for _, format := range []string{"iis", "cloudfront"} {
		got, r := read(t, Options{Format: format}, "x\n", "ip")
		if len(got) != 0 || r.Rejected() != 1 || r.Reasons()[0].Reason != whyNoFields {
			t.Errorf("%s without #Fields: got %q, %v, want one line rejected: it %s", format, got, r.Reasons(), whyNoFields)
		}
		late := strings.Repeat("x\n", sampleLines) + "#Fields: date time c-ip\n2026-11-28 10:00:00 192.0.2.1\n"
		if format == "cloudfront" {
			late = strings.Repeat("x\n", sampleLines) + "#Fields: date time x-edge-location c-ip\n2026-11-28\t10:00:00\tLAX1\t192.0.2.1\n"
		}
		if got, r = read(t, Options{Format: format}, late, "ip"); len(got) != 1 || got[0] != "192.0.2.1" || r.Rejected() != sampleLines {
			t.Errorf("%s with late #Fields: got %q, %d rejected", format, got, r.Rejected())
		}
	}
}
