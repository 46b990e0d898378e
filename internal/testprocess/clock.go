package testprocess

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// clockSource is the library that moves the clock.
//
//go:embed testdata/clock.c
var clockSource []byte

// Clock moves the wall clock of processes that have its Env.
type Clock struct {
	Env  []string
	t    testing.TB
	file string
}

// NewClock returns a clock that shows the time of the machine. Its processes must be able to read the folder. Programs that ask
// the kernel without the C library, such as those of Go, do not see it.
func NewClock(t testing.TB, folder string) *Clock {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the clock of a server is moved by a library for Linux")
	}
	Require(t, "gcc", "gcc")
	source, library, file := filepath.Join(folder, "clock.c"), filepath.Join(folder, "clock.so"), filepath.Join(folder, "ahead")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatalf("testprocess: %v", err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("testprocess: gcc: %v\n%s", err, out)
	}
	c := &Clock{t: t, file: file, Env: []string{"LD_PRELOAD=" + library, "CLOCK_FILE=" + file}}
	c.Set(0)
	return c
}

// Set sets the clock ahead of that of the machine, or behind it. It writes in place, because processes have mapped the file.
func (c *Clock) Set(ahead time.Duration) {
	c.t.Helper()
	f, err := os.OpenFile(c.file, os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead.Microseconds())), 0)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		c.t.Fatalf("testprocess: %v", err)
	}
}
