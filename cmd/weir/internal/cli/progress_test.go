package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vbauerster/mpb/v8/decor"
)

func TestProgressIsShownOnceACommandTakesLong(t *testing.T) {
	file := openLog(t, strings.Repeat("x", 4096))
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		p := ProgressOn(&screen, ProgressDelay)
		log := p.reading("access.log", file)
		if _, err := io.CopyN(io.Discard, log, 1024); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ProgressDelay + time.Second)
		update := p.Stage("deciding")
		update(30, 40)
		time.Sleep(time.Second)
		p.Stop()
		for _, want := range []string{"reading access.log", "1.0 KiB / 4.0 KiB", "deciding", "75 %"} {
			if !strings.Contains(screen.String(), want) {
				t.Errorf("the screen never showed %q: %q", want, screen.String())
			}
		}
	})
}

func TestAShortCommandShowsNoProgress(t *testing.T) {
	file := openLog(t, "a short log")
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		p := ProgressOn(&screen, ProgressDelay)
		if _, err := io.Copy(io.Discard, p.reading("access.log", file)); err != nil {
			t.Fatal(err)
		}
		p.Stage("deciding")(1, 1)
		time.Sleep(ProgressDelay - time.Millisecond)
		p.Stop()
		p.Stop()
		if screen.Len() > 0 {
			t.Errorf("got %q on the screen, want nothing", screen.String())
		}
	})
}

func TestProgressIsForTerminalsOnly(t *testing.T) {
	file := openLog(t, "")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, w := range []io.Writer{new(bytes.Buffer), file, null} {
		p := NewProgress(w, ProgressDelay)
		if p != nil {
			t.Fatalf("%T: got progress, want none", w)
		}
		if r := p.reading("log", file); r != io.Reader(file) {
			t.Errorf("%T: got a reader that counts, want the file", w)
		}
		if update := p.Stage("deciding"); update != nil {
			t.Errorf("%T: got a stage, want none", w)
		}
		p.Stop()
	}
}

func openLog(t *testing.T, text string) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// Output of commands is printed above the bar, even before the bar is drawn for the first time.
func TestOutputAboveTheBarIsNotLost(t *testing.T) {
	var screen, after bytes.Buffer
	p := ProgressOn(&screen, 0)
	p.Next("pacing", 0, decor.Any(func(decor.Statistics) string { return "" }))
	above := &aboveBar{p.bars, &after}
	_, _ = above.Write([]byte("first\nlast"))
	p.Stop()
	_, _ = above.Write([]byte("late"))
	if !strings.Contains(screen.String(), "first\nlast\n") || after.String() != "late" {
		t.Errorf("got %q, and %q after the progress ended, want all output", screen.String(), after.String())
	}
}
