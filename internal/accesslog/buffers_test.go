package accesslog

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// A log is read into few buffers, however long it is, and each is used again only once its lines are read. A line that is too long
// stands among them.
func TestALogIsReadIntoFewBuffers(t *testing.T) {
	const lines, long = 400_000, 99_999
	var text strings.Builder
	for n := range lines {
		if n == long {
			text.WriteString(strings.Repeat("x", 3*maxLine) + "\n")
			continue
		}
		fmt.Fprintf(&text, `{"time":1697062451,"ip":"192.0.2.1","n":%d,"path":"/%s"}`+"\n", n, strings.Repeat("a", n%7*10))
	}
	r, err := NewReader(Options{})
	if err != nil {
		t.Fatal(err)
	}
	slot, next := r.Want("n"), 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = r.Read("log", strings.NewReader(text.String()), func(e *Entry) (string, error) {
		if next == long {
			next++
		}
		if value, _ := e.Value(slot); string(value) != strconv.Itoa(next) {
			return "", fmt.Errorf("got number %q, want %d", value, next)
		}
		next++
		return "", nil
	})
	runtime.ReadMemStats(&after)
	if err != nil || next != lines || r.Rejected() != 1 {
		t.Fatalf("read %d of %d lines and rejected %d, want 1 (%v)", next, lines, r.Rejected(), err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > uint64(text.Len()) {
		t.Errorf("a log of %d bytes took %d bytes of buffers, want fewer than it has", text.Len(), got)
	}
}
