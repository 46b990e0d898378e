package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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
// the old one or the new one, whole.
func (f *stateFile) save(engine *weir.Memory) error {
	if f.path == "" {
		return nil
	}
	path := f.path
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the file is replaced, not a link to it
	}
	part := path + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f.cannot("write", err) // left behind by a crash
	}
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return f.cannot("write", err)
	}
	err = errors.Join(engine.Save(file), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		_ = os.Remove(part)
		return f.cannot("write", err)
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return f.cannot("write", err)
	}
	return nil
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

func (f *stateFile) cannot(verb string, err error) error {
	return errorWithHint(fmt.Errorf("serve: --state %s: cannot %s it: %s", f.path, verb, strings.TrimPrefix(err.Error(), "weir: ")),
		"the folder must exist, and this user must be able to read and write in it")
}
