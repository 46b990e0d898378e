package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTheLogHasItsLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	size, err := writeLog(path, 1000)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || bytes.Count(text, []byte("\n")) != 1000 || int64(len(text)) != size {
		t.Errorf("%d lines of %d bytes, want 1000 of %d: %v", bytes.Count(text, []byte("\n")), len(text), size, err)
	}
}
