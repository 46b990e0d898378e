package replay

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"testing"
)

// A reading that ends early ends after a whole line, which counts, and is no error, also in the midst of a packed log.
func TestAReadingEndsWhenTheMemoryIsFull(t *testing.T) {
	var text, packed bytes.Buffer
	for i := range 5 * looks {
		fmt.Fprintf(&text, "192.0.2.%d - - [17/May/2015:10:05:03 +0000] \"GET /%d HTTP/1.1\" 200 1 \"-\" \"-\"\n", i%250, i)
	}
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text.Bytes()); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	key, err := ParseKey("path")
	if err != nil {
		t.Fatal(err)
	}
	for name, log := range map[string]io.Reader{"plain": &text, "packed": &packed} {
		traffic, asked := NewTraffic(nil, key), 0
		traffic.Until(func() bool { asked++; return asked == 3 })
		if err := traffic.ReadLog("a.log", log); err != nil || !traffic.Ended() {
			t.Fatalf("%s: %v, ended: %v", name, err, traffic.Ended())
		}
		report, err := traffic.Replay(nil, Options{})
		if want := int64(3*looks - 1); err != nil || report.Lines != want || report.Unparsed != 0 || int64(report.Keys) != want {
			t.Errorf("%s: %d lines, %d unparsed, %d keys (%v), want %d, 0 and %[6]d", name, report.Lines, report.Unparsed, report.Keys, err, want)
		}
	}
}
