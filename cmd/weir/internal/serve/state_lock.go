package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/filelock"
)

// A starting daemon waits this long for the last save of a stopping one, and checks this often.
const (
	claimPatience = 10 * time.Second
	claimEvery    = 20 * time.Millisecond
)

// maxLinks bounds the links that lead to a state file.
const maxLinks = 32

// claim takes the file for this daemon until release. It follows links, even to a file that does not exist yet,
// because the lock and the saves belong to the target.
func (f *stateFile) claim(ctx context.Context) error {
	if f.path == "" {
		return nil
	}
	path, err := linkTarget(f.path)
	if err != nil {
		return f.cannot("follow", err)
	}
	f.path = path
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return f.cannot("lock", err)
	}
	if err := f.awaitLock(ctx, lock); err != nil {
		_ = lock.Close()
		return err
	}
	f.lock = lock
	return nil
}

// awaitLock takes the lock as soon as no other daemon holds it. On a file system without locks it logs a warning and
// continues.
func (f *stateFile) awaitLock(ctx context.Context, lock *os.File) error {
	started := time.Now()
	for logged := false; ; {
		switch err := filelock.Try(lock); {
		case err == nil:
			f.removeParts()
			return nil
		case !errors.Is(err, filelock.ErrLocked):
			f.log.Warn("this system cannot lock the state file; a second daemon that uses it would overwrite it", "file", f.path, "err", err)
			return nil
		case time.Since(started) >= claimPatience:
			return cli.Fail(fmt.Errorf("serve: --state %s: another weir serve uses this file", f.path),
				"stop the other one first, or give each a file of its own")
		case !logged:
			f.log.Warn("another weir serve uses the state file; waiting for its last save", "file", f.path, "at_most", claimPatience)
			logged = true
		}
		select {
		case <-time.After(claimEvery):
		case <-ctx.Done():
			return cli.Fail(fmt.Errorf("serve: --state %s: stopped while another weir serve used this file", f.path), "nothing was served, and the file is unchanged")
		}
	}
}

// release lets another daemon take the file. The lock file stays, because two daemons could lock a file that one of
// them removes.
func (f *stateFile) release() {
	if f.lock != nil {
		_ = f.lock.Close()
	}
}

// linkTarget returns the path that the links at path lead to.
func linkTarget(path string) (string, error) {
	for range maxLinks {
		target, err := os.Readlink(path)
		if err != nil { // no link, or no file
			return path, nil
		}
		if !filepath.IsAbs(target) {
			folder, _ := filepath.Split(path)
			target = folder + target // not cleaned: a folder may be a link
		}
		path = target
	}
	return "", &os.PathError{Op: "readlink", Path: path, Err: syscall.ELOOP}
}

// removeParts removes the part files of killed daemons. The caller holds the lock, so no daemon is writing one.
func (f *stateFile) removeParts() {
	folder, name := filepath.Split(f.path)
	entries, _ := os.ReadDir(filepath.Clean(folder)) // an unreadable folder keeps its part files
	for _, entry := range entries {
		digits, isPart := strings.CutSuffix(entry.Name(), partEnd)
		digits, isOurs := strings.CutPrefix(digits, name+".")
		if isPart && isOurs && strings.Trim(digits, "0123456789") == "" {
			_ = os.Remove(folder + entry.Name())
		}
	}
}
