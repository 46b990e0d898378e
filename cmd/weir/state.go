package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/weirflow/weir"
)

// stateFile keeps the states of an engine in a file, so that a restart goes on
// where the last one ended. The zero value keeps nothing.
type stateFile struct {
	path  string
	every time.Duration // 0 saves only when asked, and at the end
	log   *slog.Logger
	keys  int // most keys of a limit; 0 is the default of the engine
	lock  *os.File
}

// options are those of the engine, new or loaded.
func (f *stateFile) options() weir.MemoryOptions {
	return weir.MemoryOptions{MaxKeys: f.keys, Parent: networkOf, Logger: f.log}
}

// load is the engine of the file; a new one if there is none. The file stays as
// it is. What others may read is loaded, but not silently: it holds the secret
// that keys are hashed with.
func (f *stateFile) load() (*weir.Memory, error) {
	if f.path == "" {
		return weir.NewMemory(f.options()), nil
	}
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return weir.NewMemory(f.options()), nil
	case err != nil:
		return nil, f.cannot("read", err)
	case !info.Mode().IsRegular():
		return nil, errorWithHint(fmt.Errorf("serve: --state %s: not a file", f.path), "name a file, which need not exist yet, like: --state ./weir.state")
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		f.log.Warn("others may read the state file, and with it choose keys that share a budget; the next save makes it private", "file", f.path, "mode", info.Mode().Perm())
	}
	file, err := os.Open(f.path)
	if err != nil {
		return nil, f.cannot("read", err)
	}
	defer func() { _ = file.Close() }()
	engine, err := weir.LoadMemory(file, f.options())
	if bad, ok := errors.AsType[*weir.SnapshotError](err); ok {
		return nil, errorWithHint(fmt.Errorf("serve: --state %s: the file %s (after byte %d)", f.path, bad.Reason, bad.Offset),
			"nothing was loaded, and the file was not touched",
			"to start with fresh budgets, move it away or name another file")
	}
	if err != nil {
		return nil, f.cannot("read", err)
	}
	f.log.Info("state loaded", "file", f.path, "bytes", info.Size(), "saved", info.ModTime())
	return engine, nil
}

// keep saves in every interval and when asked, until the context ends. A save
// that fails is logged, and the next one tries again.
func (f *stateFile) keep(ctx context.Context, engine *weir.Memory, asked <-chan os.Signal) {
	var ticks <-chan time.Time
	if f.every > 0 {
		ticker := time.NewTicker(f.every)
		defer ticker.Stop()
		ticks = ticker.C
	}
	for {
		level := slog.LevelDebug
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		case <-asked:
			level = slog.LevelInfo
		}
		start := time.Now()
		if err := f.save(engine); err != nil {
			f.log.Error("the state was not saved", "err", err)
			continue
		}
		f.log.Log(ctx, level, "state saved", "file", f.path, "took", time.Since(start))
	}
}

// save replaces the file at once: whoever reads it, also after a crash, finds
// the old one or the new one, whole. What is being written has a name of its own,
// so that nobody else writes into it, where there are no locks either.
func (f *stateFile) save(engine *weir.Memory) error {
	if f.path == "" {
		return nil
	}
	folder, name := filepath.Split(f.path)
	folder = cmp.Or(folder, ".")
	part, err := os.CreateTemp(folder, name+".*"+partEnd) // private: mode 0600
	if err != nil {
		return f.cannot("write", err)
	}
	if err = write(part, engine); err == nil {
		err = os.Rename(part.Name(), f.path)
	}
	if err != nil {
		_ = os.Remove(part.Name())
		return f.cannot("write", err)
	}
	if err := syncFolder(folder); err != nil {
		return f.cannot("write", err)
	}
	return nil
}

// write saves the engine to a file, which it closes. The first error counts.
func write(file *os.File, engine *weir.Memory) error {
	err := engine.Save(file)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// syncFolder makes a rename last, where folders can be synchronized.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// cannot is the error of a file that cannot be used, with what to do about it.
func (f *stateFile) cannot(verb string, err error) error {
	hint := "the folder must exist, and this user must be able to read and write in it"
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		hint = "the disk is full, or this user's share of it: make room, or name a file on another disk; the file saved before is kept"
	}
	return errorWithHint(fmt.Errorf("serve: --state %s: cannot %s it: %s", f.path, verb, strings.TrimPrefix(err.Error(), "weir: ")), hint)
}
