package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressIsShownOnceACommandTakesLong(t *testing.T) {
	file := openLog(t, strings.Repeat("x", 4096))
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		p := progressOn(&screen, progressDelay)
		log := p.reading("access.log", file)
		if _, err := io.CopyN(io.Discard, log, 1024); err != nil {
			t.Fatal(err)
		}
		time.Sleep(progressDelay + time.Second)
		update := p.stage("deciding")
		update(30, 40)
		time.Sleep(time.Second)
		p.stop()
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
		p := progressOn(&screen, progressDelay)
		if _, err := io.Copy(io.Discard, p.reading("access.log", file)); err != nil {
			t.Fatal(err)
		}
		p.stage("deciding")(1, 1)
		time.Sleep(progressDelay - time.Millisecond)
		p.stop()
		p.stop()
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
		p := newProgress(w, progressDelay)
		if p != nil {
			t.Fatalf("%T: got progress, want none", w)
		}
		if r := p.reading("log", file); r != io.Reader(file) {
			t.Errorf("%T: got a reader that counts, want the file", w)
		}
		if update := p.stage("deciding"); update != nil {
			t.Errorf("%T: got a stage, want none", w)
		}
		p.stop()
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
