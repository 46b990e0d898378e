package rulefiles

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Opening a pipe waits for a writer, and there may never be one.
func TestAPipeInADirectoryHoldsUpNoReload(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "a.yaml"), ruled("5/m"))
	s := opened(t, folder)
	if err := syscall.Mkfifo(filepath.Join(folder, "b.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := s.Reload(); r.Err == nil || !strings.Contains(r.Err.Error(), "b.yaml: is no regular file") || inForce(s) != "token bucket 5/m" {
		t.Errorf("got %v, %s in force", r.Err, inForce(s))
	}
}
