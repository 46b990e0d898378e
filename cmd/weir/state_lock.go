package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A daemon that starts while another one stops waits for the last save of that
// one, and asks this often whether it has come.
const (
	claimPatience = 10 * time.Second
	claimEvery    = 20 * time.Millisecond
)

// maxLinks is how many links lead to a state file at most.
const maxLinks = 32

// claim makes the file this daemon's alone until release. It follows links, also
// to where no file is yet: the lock and the saves belong to the file itself.
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

// awaitLock takes the lock as soon as no other daemon has it. Where the file
// system has no locks, it says so and goes on without.
func (f *stateFile) awaitLock(ctx context.Context, lock *os.File) error {
	started := time.Now()
	for told := false; ; {
		switch err := tryLock(lock); {
		case err == nil:
			f.removeParts()
			return nil
		case !errors.Is(err, errLocked):
			f.log.Warn("the state file cannot be locked here; a second daemon on it would overwrite its budgets", "file", f.path, "err", err)
			return nil
		case time.Since(started) >= claimPatience:
			return errorWithHint(fmt.Errorf("serve: --state %s: another weir serve uses this file", f.path),
				"stop the other one first, or give each a file of its own")
		case !told:
			f.log.Warn("another weir serve uses the state file; waiting for its last save", "file", f.path, "at_most", claimPatience)
			told = true
		}
		select {
		case <-time.After(claimEvery):
		case <-ctx.Done():
			return errorWithHint(fmt.Errorf("serve: --state %s: stopped while another weir serve used this file", f.path), "nothing was served, and the file was not touched")
		}
	}
}

// release lets another daemon have the file. The lock file stays, because one
// that is removed may be locked by two.
func (f *stateFile) release() {
	if f.lock != nil {
		_ = f.lock.Close()
	}
}

// linkTarget is where the links at path lead to.
func linkTarget(path string) (string, error) {
	for range maxLinks {
		target, err := os.Readlink(path)
		if err != nil { // no link, or nothing at all
			return path, nil
		}
		if !filepath.IsAbs(target) {
			folder, _ := filepath.Split(path)
			target = folder + target // not cleaned: a folder may be a link too
		}
		path = target
	}
	return "", &os.PathError{Op: "readlink", Path: path, Err: syscall.ELOOP}
}

// partEnd is the end of the names of files that are being written, after the
// name of the state file and digits.
const partEnd = ".part"

// removeParts removes what saves left that were killed. The lock is held, so
// none is being written.
func (f *stateFile) removeParts() {
	folder, name := filepath.Split(f.path)
	entries, _ := os.ReadDir(filepath.Clean(folder)) // what cannot be listed stays
	for _, entry := range entries {
		digits, isPart := strings.CutSuffix(entry.Name(), partEnd)
		digits, isOurs := strings.CutPrefix(digits, name+".")
		if isPart && isOurs && strings.Trim(digits, "0123456789") == "" {
			_ = os.Remove(folder + entry.Name())
		}
	}
}
