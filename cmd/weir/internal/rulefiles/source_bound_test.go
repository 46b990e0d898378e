package rulefiles

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// endless counts what is read of it.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	if e.read > 10*maxFiles {
		return 0, io.ErrUnexpectedEOF
	}
	e.read += len(b)
	return len(b), nil
}

func TestFilesAboveTheBoundAreNotReadWhole(t *testing.T) {
	var in endless
	if _, err := Load(Options{Stdin: &in}, "-"); err == nil || !strings.Contains(err.Error(), "is too large") || in.read > 2*maxFile {
		t.Errorf("standard input: got %v after %d bytes", err, in.read)
	}
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 256<<20); err != nil { // a hole takes no space
		t.Fatal(err)
	}
	if content, err := readFile(large, maxFile, true); err != errTooLarge || content != nil {
		t.Errorf("a file of 256 MiB: got %d bytes and %v", len(content), err)
	}
}
