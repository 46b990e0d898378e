package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestAFileAboveItsBoundIsNotReadWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFile(name, 10); err != nil || string(got) != "0123456789" {
		t.Errorf("a file of 10 bytes: got %q and %v", got, err)
	}
	const want = "has more than 9 bytes"
	if got, err := ReadFile(name, 9); err == nil || got != nil || !strings.Contains(err.Error(), want) {
		t.Errorf("with a bound of 9: got %q and %v, want an error with %q", got, err, want)
	}
	if err := os.Truncate(name, 256<<20); err != nil { // a hole takes no space
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := ReadFile(name, 9); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a file of 256 MiB: got %v, want an error with %q", err, want)
	}
	runtime.ReadMemStats(&after)
	if read := after.TotalAlloc - before.TotalAlloc; read > 1<<20 {
		t.Errorf("%d bytes were allocated for a bound of 9", read)
	}
}
