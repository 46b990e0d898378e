package redistest

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/testprocess"
)

// clockSource is the library that moves a server's clock.
//
//go:embed testdata/clock.c
var clockSource []byte

// StartWithClock starts one server whose clock [Server.SetClock] moves.
func StartWithClock(t testing.TB, config ...string) *Server {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the clock of a server is moved by a library for Linux")
	}
	testprocess.Require(t, "gcc", "gcc")
	dir := t.TempDir()
	source, library, file := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so"), filepath.Join(dir, "ahead")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("redistest: gcc: %v\n%s", err, out)
	}
	setClock(t, file, 0)
	return start(t, &Server{clock: file, env: []string{"LD_PRELOAD=" + library, "CLOCK_FILE=" + file}}, config)
}

// SetClock sets the clock of a server of [StartWithClock] ahead of the machine's clock, or behind it.
func (s *Server) SetClock(ahead time.Duration) {
	s.t.Helper()
	setClock(s.t, s.clock, ahead)
}

// setClock writes in place, because the server has mapped the file.
func setClock(t testing.TB, file string, ahead time.Duration) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead.Microseconds())), 0)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
}
