package serve

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/filelock"
)

// The modes of sockets. The system lets in who may write to the file.
const (
	adminMode   fs.FileMode = 0o600
	trafficMode fs.FileMode = 0o660
)

// mostPath bounds the path of a socket on every system.
const mostPath = 103

// unixPrefix begins the address of a unix socket.
const unixPrefix = "unix:"

// socket is a listening unix socket. Its file stands there ready: with its mode, and never without a listener.
type socket struct {
	net.Listener
	path string
	file fs.FileInfo
}

// Addr returns the address where clients reach the socket.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close ends the listener, and removes the file unless another daemon has put its own there.
func (s *socket) Close() error {
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.file) {
		_ = os.Remove(s.path)
	}
	return s.Listener.Close()
}

// listenUnix listens on a socket. It replaces one without a listener, and no other file.
func listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	folder := filepath.Dir(path)
	if len(path) > mostPath {
		return nil, fmt.Errorf("the path has %d bytes, and that of a socket at most %d: %s", len(path), mostPath, path)
	}
	if err := checkFolder(folder); err != nil {
		return nil, err
	}
	defer lockFolder(folder)() // between the check for a listener and the new file
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s is a file, not a socket", path)
	case answers(path):
		return nil, &net.OpError{Op: "listen", Net: "unix", Addr: &net.UnixAddr{Name: path, Net: "unix"}, Err: syscall.EADDRINUSE}
	}
	return bindUnix(path, mode)
}

// bindUnix makes the socket in a folder of its own until it has its mode. Renaming replaces an old one.
func bindUnix(path string, mode fs.FileMode) (net.Listener, error) {
	private, err := os.MkdirTemp(filepath.Dir(path), ".weir") // mode 0700
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(private) }()
	made := filepath.Join(private, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if errors.Is(err, syscall.EINVAL) {
		err = fmt.Errorf("the path of a folder beside the socket is too long: %s", made)
	}
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // the file has moved
	s := &socket{Listener: listener, path: path}
	if err = os.Chmod(made, mode); err == nil {
		err = os.Rename(made, path)
	}
	if err == nil {
		s.file, err = os.Lstat(path)
	}
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	return s, nil
}

// answers reports whether somebody listens on a socket.
func answers(path string) bool {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return !errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = conn.Close()
	return true
}

// checkFolder refuses a folder where other users can replace a socket by their own.
func checkFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("other users may write in %s (mode %v), and could replace the socket: chmod go-w, or another folder, prevents that", path, info.Mode().Perm())
	}
	return nil
}

// lockFolder keeps other daemons from listening in a folder meanwhile, where the system has locks.
func lockFolder(path string) (unlock func()) {
	folder, err := os.Open(path)
	if err != nil {
		return func() {}
	}
	for range 100 {
		if !errors.Is(filelock.Try(folder), filelock.ErrLocked) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return func() { _ = folder.Close() }
}

// defaultSocket returns the path of the admin socket of a daemon at this address, in a folder that only this user
// may enter.
func defaultSocket(traffic net.Addr) (path string, err error) {
	folder, own := socketFolder()
	if own {
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		info, err := os.Lstat(folder)
		if err != nil {
			return "", err
		}
		if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !ownedByThisUser(info) {
			return "", fmt.Errorf("%s is not a folder of this user alone", folder)
		}
	}
	return filepath.Join(folder, "admin-"+addressName(traffic)+".sock"), nil
}

// socketFolder returns the folder of admin sockets, and whether it is for the daemon to make.
func socketFolder() (folder string, own bool) {
	if folder, _, _ = strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":"); folder != "" { // by systemd
		return folder, false
	}
	if run := os.Getenv("XDG_RUNTIME_DIR"); run != "" {
		return filepath.Join(run, "weir"), true
	}
	return filepath.Join(os.TempDir(), "weir-"+strconv.Itoa(os.Getuid())), true
}

// AdminSocket returns the path of the admin socket of this user's daemon, if there is one such daemon.
func AdminSocket() (path string, err error) {
	folder, _ := socketFolder()
	all, _ := filepath.Glob(filepath.Join(folder, "admin-*.sock"))
	live := slices.DeleteFunc(all, func(path string) bool { return !answers(path) })
	switch len(live) {
	case 0:
		return "", fmt.Errorf("no daemon of this user has an admin socket in %s", folder)
	case 1:
		return live[0], nil
	}
	return "", fmt.Errorf("%d daemons of this user have admin sockets, such as %s and %s", len(live), live[0], live[1])
}

// addressName tells the addresses of one machine apart.
func addressName(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok {
		return strconv.Itoa(tcp.Port)
	}
	name := strings.TrimSuffix(filepath.Base(at.String()), ".sock")
	return cmp.Or(strings.Trim(name, "."), "weir")
}
