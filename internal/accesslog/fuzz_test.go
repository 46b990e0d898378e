package accesslog

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirflow/weir/front"
)

// FuzzReadLine compares the reader with slow and simple ones wherever those understand the line. For other lines it checks
// only that the reader returns, that it counts each line once, and that a client is an address.
func FuzzReadLine(f *testing.F) {
	for _, line := range []string{full, common, vhost, flat, caddy, "", "{", `a b c [17/May/2015:12:00:00 +0000] "`} {
		f.Add([]byte(line))
	}
	for _, s := range samples {
		f.Add([]byte(s.log))
	}
	names := []string{"ip", "user", "method", "path", "query", "uri", "status", "referer", "agent", "host"}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := NewReader(Options{})
		if err != nil {
			t.Fatal(err)
		}
		slots := make([]Slot, len(names))
		for i, name := range names {
			slots[i] = r.Want(name)
		}
		entries := int64(0)
		err = r.Read("log", bytes.NewReader(line), func(e *Entry) (string, error) {
			entries++
			for i, name := range names {
				value, ok := e.Value(slots[i])
				if e.Why(slots[i]) == "" {
					t.Fatalf("%q has no reason to lack %s", line, name)
				}
				if _, err := netip.ParseAddr(strings.TrimSuffix(string(value), "/64")); name == "ip" && ok && err != nil {
					t.Fatalf("%q: got client %q, want an address or a network", line, value)
				}
				want, wantAt, known := slowCombined(line, name)
				if known && (string(value) != want || e.Time != wantAt) {
					t.Fatalf("%s of %q: got %q at %d, want %q at %d", name, line, value, e.Time, want, wantAt)
				}
			}
			return "", nil
		})
		if err != nil && !bytes.HasPrefix(line, []byte("\x1f\x8b")) || entries+r.Rejected() != r.Lines() {
			t.Fatalf("%q: got %d entries and %d rejected of %d lines, %v", line, entries, r.Rejected(), r.Lines(), err)
		}
		compareJSON(t, line)
	})
}

var (
	slowLine = regexp.MustCompile(`^([^\s"\[\]]+) ([^\s"\[\]]+) ([^\s"\[\]]+) \[([^\]]+)\] ` +
		`"([A-Z]+) ([^\s"?\\]*)(\?([^\s"\\]*))? HTTP/1\.[01]" ([0-9]{3}) ([0-9]+|-) "((?:[^"\\\n]|\\[^\n])*)" "((?:[^"\\\n]|\\[^\n])*)"$`)
	slowFields = map[string]int{"ip": 1, "user": 3, "method": 5, "path": 6, "query": 8, "status": 9, "referer": 11, "agent": 12}
)

// slowCombined parses unambiguous lines of the combined format.
func slowCombined(line []byte, name string) (key string, at int64, ok bool) {
	m := slowLine.FindStringSubmatch(string(line))
	if m == nil || m[1][0] == '{' || len(line) > 4096 {
		return "", 0, false
	}
	moment, err := time.Parse("02/Jan/2006:15:04:05 -0700", m[4])
	if err != nil || len(m[4]) != 26 || moment.UTC().Year() < 1678 || moment.UTC().Year() > 2261 {
		return "", 0, false
	}
	group, ok := slowFields[name]
	switch name {
	case "uri":
		return m[6] + m[7], moment.UnixNano(), true
	case "ip", "user":
		client, err := netip.ParseAddr(m[1])
		if err != nil || strings.ContainsAny(m[2]+m[3], ".:,") { // which may be a further address
			return "", 0, false
		}
		m[1] = front.AddressKey(client, 64)
	}
	return m[group], moment.UnixNano(), ok
}

// compareJSON checks that the parser finds every scalar of a valid line under its path.
func compareJSON(t *testing.T, line []byte) {
	if len(line) == 0 || line[0] != '{' || !json.Valid(line) || !utf8.Valid(line) || bytes.ContainsRune(line, '\n') {
		return
	}
	want := map[string]string{}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	if depth := slowFlatten(t, decoder, "", want); depth > maxDepth {
		return
	}
	var names []string
	for path := range want {
		names = append(names, path)
	}
	reader, values := newObject(names), make([][]byte, len(names))
	if !reader.split(line, values).whole {
		t.Fatalf("line %q: got a fault at byte %d, want none", line, reader.at)
	}
	for i, path := range names {
		if got := values[i]; string(got) != want[path] {
			t.Fatalf("line %q: got %q for field %q, want %q", line, got, path, want[path])
		}
	}
}

// slowFlatten reads the next value, at the given path, and returns its depth. Objects, arrays and null count as
// empty.
func slowFlatten(t *testing.T, d *json.Decoder, path string, into map[string]string) (depth int) {
	token, err := d.Token()
	if err != nil {
		t.Fatalf("token after %q: %v", path, err)
	}
	delim, ok := token.(json.Delim)
	if !ok {
		into[path] = slowText(token)
		return 1
	}
	into[path] = ""
	for i := 0; d.More(); i++ {
		name := strconv.Itoa(i)
		if delim == '{' {
			key, err := d.Token()
			if err != nil {
				t.Fatalf("name in %q: %v", path, err)
			}
			name = key.(string)
		}
		depth = max(depth, slowFlatten(t, d, below(path, name), into))
	}
	if _, err := d.Token(); err != nil {
		t.Fatalf("end of %q: %v", path, err)
	}
	return depth + 1
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func slowText(token json.Token) string {
	switch v := token.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}
