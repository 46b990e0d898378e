package serve

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// shortFolder returns a folder whose path leaves room for the name of a socket.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "w")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

func TestSocketIsOfItsUserAlone(t *testing.T) {
	path := filepath.Join(shortFolder(t), "a.sock")
	on, err := listenUnix(path, adminMode)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != os.ModeSocket {
		t.Fatalf("got %v and %v, want a socket of mode 0600", info.Mode(), err)
	}
	go func() {
		conn, err := on.Accept()
		if err == nil {
			_ = conn.Close()
		}
	}()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	_ = on.Close()
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
		t.Errorf("after the end there is %v, want nothing", left)
	}
}

func TestStaleSocketIsReplacedAndALiveOneIsNot(t *testing.T) {
	path := filepath.Join(shortFolder(t), "a.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false) // as after a crash
	_ = dead.Close()
	first, err := listenUnix(path, adminMode)
	if err != nil {
		t.Fatalf("a socket without a listener stays: %v", err)
	}
	if _, err := listenUnix(path, adminMode); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("beside a listener: got %v, want %v", err, syscall.EADDRINUSE)
	}
	_ = os.Remove(path)
	second, err := listenUnix(path, adminMode)
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the end of a listener removed the socket of another: %v", err)
	}
	_ = second.Close()
}

func TestSocketReplacesNoOtherFileAndNeedsASafeFolder(t *testing.T) {
	folder := shortFolder(t)
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "link"} {
		if _, err := listenUnix(filepath.Join(folder, name), adminMode); err == nil || !strings.Contains(err.Error(), "is a file, not a socket") {
			t.Errorf("%s: got %v, want an error", name, err)
		}
	}
	if _, err := listenUnix(filepath.Join(folder, strings.Repeat("x", mostPath)), adminMode); err == nil || !strings.Contains(err.Error(), "at most 103") {
		t.Errorf("a long path: got %v, want an error with the bound", err)
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(filepath.Join(folder, "a.sock"), adminMode); err == nil || !strings.Contains(err.Error(), "could replace the socket: chmod go-w") {
		t.Errorf("in a folder of everybody: got %v, want an error", err)
	}
}

func TestDefaultSocketIsInAFolderOfThisUserAlone(t *testing.T) {
	folder := shortFolder(t)
	t.Setenv("RUNTIME_DIRECTORY", "")
	t.Setenv("XDG_RUNTIME_DIR", folder)
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	path, err := defaultSocket(at)
	if want := filepath.Join(folder, "weir", "admin-8080.sock"); err != nil || path != want {
		t.Fatalf("got %s and %v, want %s", path, err, want)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v (%v), want 0700", info.Mode(), err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := defaultSocket(at); err == nil {
		t.Error("a folder that others may enter was taken")
	}
	t.Setenv("RUNTIME_DIRECTORY", "/run/weir:/run/other")
	if path, err := defaultSocket(&net.UnixAddr{Name: "/run/weir/http.sock", Net: "unix"}); err != nil || path != "/run/weir/admin-http.sock" {
		t.Errorf("under systemd: got %s and %v", path, err)
	}
}
