package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTheLogHasItsLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := writeLog(path, 1000); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || bytes.Count(text, []byte("\n")) != 1000 {
		t.Errorf("%d lines, want 1000: %v", bytes.Count(text, []byte("\n")), err)
	}
}
