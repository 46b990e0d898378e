package replay_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weirflow/weir/internal/accesslog"
	"github.com/weirflow/weir/internal/replay"
)

const oneLine = `{"ts":1,"ip":"10.0.0.1"}`

func TestEveryLineIsCounted(t *testing.T) {
	const longest = 1 << 20
	pad := func(size int) string { return oneLine + strings.Repeat(" ", size-len(oneLine)) }
	for _, c := range []struct {
		name, log       string
		lines, unparsed int64
	}{
		{"nothing", "", 0, 0},
		{"one without an end", oneLine, 1, 0},
		{"one with an end", oneLine + "\n", 1, 0},
		{"ends of Windows", oneLine + "\r\n" + oneLine + "\r\n", 2, 0},
		{"a byte order mark", "\ufeff" + oneLine, 1, 0},
		{"blank lines", "\n\n" + oneLine + "\n \n", 4, 3},
		{"the longest line", pad(longest) + "\n" + oneLine, 2, 0},
		{"the longest line at the end", pad(longest), 1, 0},
		{"a line too long", pad(longest+1) + "\n" + oneLine, 2, 1},
		{"a line too long at the end", oneLine + "\n" + pad(longest+1), 2, 1},
		{"a line far too long", pad(5*longest) + "\n" + oneLine + "\n", 2, 1},
		{"a line far too long at the end", pad(5 * longest), 1, 1},
	} {
		for form, log := range map[string][]byte{"plain": []byte(c.log), "gzip": zipped(t, c.log)} {
			got := replayOf(t, "ip", replay.Options{}, log, "fixed window 1/s")
			counted := got.Limits[0].Admitted + got.Limits[0].Refused
			if got.Lines != c.lines || got.Unparsed != c.unparsed || counted != c.lines-c.unparsed {
				t.Errorf("%s, %s: got %d lines, %d unparsed, %d decided, want %d, %d, %d",
					c.name, form, got.Lines, got.Unparsed, counted, c.lines, c.unparsed, c.lines-c.unparsed)
			}
		}
	}
}

func TestGzipMembersAreOneLog(t *testing.T) {
	log := append(zipped(t, oneLine+"\n"), zipped(t, oneLine+"\n")...)
	if got := replayOf(t, "ip", replay.Options{}, log, "fixed window 1/s"); got.Lines != 2 || got.Unparsed != 0 {
		t.Errorf("got %d lines, %d unparsed, want 2, 0", got.Lines, got.Unparsed)
	}
}

func TestUnparsedLinesAreShownWithPlaceAndReason(t *testing.T) {
	traffic := newTraffic(t)
	log := oneLine + "\n\n" + strings.Repeat("x", 100) + "\n{}\n" + strings.Repeat("y\n", 10)
	if err := traffic.ReadLog("a.log", strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	want := []accesslog.Rejected{
		{Log: "a.log", Line: 2, Reason: "is blank"},
		{Log: "a.log", Line: 3, Reason: "is not valid JSON", Text: strings.Repeat("x", 80)},
		{Log: "a.log", Line: 4, Reason: "has no time", Text: "{}"},
		{Log: "a.log", Line: 5, Reason: "is not valid JSON", Text: "y"},
		{Log: "a.log", Line: 6, Reason: "is not valid JSON", Text: "y"},
	}
	if got := traffic.Samples(); !slices.Equal(got, want) {
		t.Errorf("got samples %+v, want %+v", got, want)
	}
	report, err := traffic.Replay(nil, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []accesslog.Reason{{Reason: "is not valid JSON", Lines: 11}, {Reason: "has no time", Lines: 1}, {Reason: "is blank", Lines: 1}}; !slices.Equal(report.Reasons, want) {
		t.Errorf("got reasons %v, want %v", report.Reasons, want)
	}
}

func TestALogThatFailsSaysWhere(t *testing.T) {
	broken := errors.New("disk on fire")
	whole := zipped(t, strings.Repeat(oneLine+"\n", 1000))
	for _, c := range []struct {
		name string
		log  io.Reader
		is   error
		want string
	}{
		{"a reader that fails", io.MultiReader(strings.NewReader(oneLine+"\n"), iotest.ErrReader(broken)), broken, "replay: read a.log after line 1: disk on fire"},
		{"gzip cut short", bytes.NewReader(whole[:len(whole)-4]), io.ErrUnexpectedEOF, "replay: read a.log after line 1000: unexpected EOF"},
		{"gzip cut in its head", bytes.NewReader(whole[:5]), io.ErrUnexpectedEOF, "replay: read a.log after line 0: unexpected EOF"},
		{"not gzip after all", strings.NewReader("\x1f\x8b and so on, for long enough"), gzip.ErrHeader, "replay: read a.log after line 0: gzip: invalid header"},
	} {
		err := newTraffic(t).ReadLog("a.log", c.log)
		if !errors.Is(err, c.is) || err.Error() != c.want {
			t.Errorf("%s: got error %v, want %s", c.name, err, c.want)
		}
	}
}

func TestLinesAreTheSameInAnyPieces(t *testing.T) {
	log := realLog(t)[:20_000]
	traffic := newTraffic(t)
	if err := traffic.ReadLog("log", iotest.OneByteReader(bytes.NewReader(log))); err != nil {
		t.Fatal(err)
	}
	got, err := traffic.Replay(nil, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(bytes.Count(log, []byte("\n")) + 1); got.Lines != want {
		t.Errorf("got %d lines, want %d", got.Lines, want)
	}
}

func newTraffic(t *testing.T) *replay.Traffic {
	t.Helper()
	key, err := replay.ParseKey("ip")
	if err != nil {
		t.Fatal(err)
	}
	return replay.NewTraffic(nil, key)
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
