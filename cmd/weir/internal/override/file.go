package override

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// file keeps entries in a file, or nowhere if it has no path.
type file struct {
	path    string
	entries map[target]Entry
	read    bool
	log     *slog.Logger
}

// OpenFile returns the table of a file, which need not exist. Without a path, entries end with the process.
func OpenFile(path string, log *slog.Logger) (*Table, error) {
	return open(context.Background(), &file{path: path, entries: map[target]Entry{}, log: log}, log)
}

func (f *file) load(context.Context) (entries []Entry, changed bool, err error) {
	if f.read || f.path == "" {
		return nil, false, nil
	}
	content, err := cli.ReadFile(f.path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		f.read = true
		return nil, true, nil
	}
	sealed := false
	if err == nil {
		entries, sealed, err = readEntries(content)
	}
	if err != nil {
		return nil, false, &StoreError{fmt.Errorf("%s: %w", f.path, err)}
	}
	for _, e := range entries {
		f.entries[e.target()] = e
	}
	if !sealed { // from now on it has a checksum
		if err := f.write(); err != nil {
			return nil, false, err
		}
		f.log.Info("the file of overrides had no checksum, and has one now", "file", f.path, "overrides", len(entries))
	}
	f.read = true
	return entries, true, nil
}

// maxFile bounds the file of overrides, in bytes.
const maxFile = 64 << 20

// put writes the file again. A reader finds the old file or the new one.
func (f *file) put(_ context.Context, at target, e *Entry) error {
	if f.path == "" {
		return nil
	}
	before, known := f.entries[at]
	delete(f.entries, at)
	if e != nil {
		f.entries[at] = *e
	}
	err := f.write()
	if err != nil {
		delete(f.entries, at)
		if known {
			f.entries[at] = before
		}
	}
	return err
}

func (f *file) write() error {
	entries := []Entry{}
	for _, e := range f.entries {
		if time.Now().Before(e.Until) {
			entries = append(entries, e)
		}
	}
	content, err := writeEntries(entries)
	if err != nil {
		return err
	}
	return replace(f.path, content)
}

// replace writes a file that only this user can read. A reader finds the old content or the new one.
func replace(path string, content []byte) error {
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part") // mode 0600
	if err != nil {
		return &StoreError{err}
	}
	if _, err = part.Write(content); err == nil {
		err = part.Sync()
	}
	if closed := part.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		_ = os.Remove(part.Name())
		return &StoreError{err}
	}
	return nil
}

// syncFolder makes a rename outlast a crash of the machine, where the system can sync folders.
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
