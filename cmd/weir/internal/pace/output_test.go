package pace

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/filter"
)

// writeTo writes text to a stream in pieces of 1000 bytes.
func writeTo(s commandStreams, text string) {
	for len(text) > 0 {
		n := min(len(text), 1000)
		_, _ = s.out.Write([]byte(text[:n]))
		text = text[n:]
	}
}

func TestOutputsOfCommandsComeWholeAndBeyondTheBoundInWholeLines(t *testing.T) {
	var out, errs bytes.Buffer
	o := &commandOutput{out: &out, errs: &errs, held: mostHeld}
	a, b := o.begin(), o.begin()
	writeTo(a, "a1\n")
	writeTo(b, "b1\n")
	_, _ = a.errs.Write([]byte("error"))
	writeTo(a, "a2")
	if out.Len()+errs.Len() > 0 {
		t.Errorf("got %q and %q, want nothing before a command ends", out.String(), errs.String())
	}
	if err := a.end(); err != nil || out.String() != "a1\na2" || errs.String() != "error" {
		t.Errorf("got %q and %q, error %v, want the whole output of a", out.String(), errs.String(), err)
	}
	out.Reset()
	line := strings.Repeat("x", 999) + "\n"
	writeTo(b, strings.Repeat(line, 2000)+"half")
	if got := out.String(); got == "" || !strings.HasPrefix(got, "b1\nx") || !strings.HasSuffix(got, "\n") {
		t.Errorf("got %d bytes, want whole lines beyond the bound", len(got))
	}
	if held := b.out.(*heldStream).text; len(held) > mostHeld {
		t.Errorf("%d bytes are held, above the bound of %d", len(held), mostHeld)
	}
	_ = b.end()
	if want := "b1\n" + strings.Repeat(line, 2000) + "half"; out.String() != want {
		t.Errorf("got %d bytes in the end, want the %d of the output, unchanged", out.Len(), len(want))
	}
}

func TestALineOfACommandAboveTheBoundGoesInPieces(t *testing.T) {
	for _, held := range []int{0, mostHeld} {
		var out bytes.Buffer
		s := (&commandOutput{out: &out, errs: &out, held: held}).begin()
		writeTo(s, strings.Repeat("x", 3*mostHeld/2))
		if n := len(s.out.(*heldStream).text); n > mostHeld {
			t.Errorf("%d bytes are held, above the bound of %d", n, mostHeld)
		}
		_ = s.end()
		if out.Len() != 3*mostHeld/2 {
			t.Errorf("got %d bytes, want %d", out.Len(), 3*mostHeld/2)
		}
	}
}

func TestACommandAloneIsHeardLineByLine(t *testing.T) {
	var out bytes.Buffer
	s := (&commandOutput{out: &out, errs: &out}).begin()
	writeTo(s, "one\ntw")
	if out.String() != "one\n" {
		t.Errorf("got %q, want the line that is complete", out.String())
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestACommandWhoseOutputCannotBeWrittenEndsThePipe(t *testing.T) {
	full := errors.New("no space")
	s := (&commandOutput{out: brokenWriter{full}, errs: brokenWriter{full}}).begin()
	writeTo(s, strings.Repeat("line\n", 1000))
	var failed *filter.StreamError
	if err := s.end(); !errors.As(err, &failed) || failed.Op != "write" || !errors.Is(err, full) {
		t.Errorf("got %v, want a *StreamError of the write", err)
	}
}
