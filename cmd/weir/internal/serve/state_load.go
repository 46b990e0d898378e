package serve

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// load returns the engine in the file, or a new engine if there is no file. It does not change the file. It warns
// about a file that others may read, because the file holds the secret that keys are hashed with.
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
		return nil, cli.Fail(fmt.Errorf("serve: --state %s: not a file", f.path), "name a file, which need not exist yet, like: --state ./weir.state")
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		f.log.Warn("other users may read the state file and could choose keys that share a limit; the next save makes it private", "file", f.path, "mode", info.Mode().Perm())
	}
	file, err := os.Open(f.path)
	if err != nil {
		return nil, f.cannot("read", err)
	}
	defer func() { _ = file.Close() }()
	engine, err := weir.LoadMemory(file, f.options())
	if bad, ok := errors.AsType[*weir.SnapshotError](err); ok {
		return engine, f.admit(engine, bad)
	}
	if err != nil {
		return nil, f.cannot("read", err)
	}
	f.log.Info("state loaded", "file", f.path, "bytes", info.Size(), "saved", info.ModTime())
	return engine, nil
}

// admit refuses a file that was not loaded as a whole, unless it lacks only states that no limit of this program has, or
// --state-partial is given. It then logs what is lost, and keeps a copy of the file.
func (f *stateFile) admit(engine *weir.Memory, bad *weir.SnapshotError) error {
	if engine == nil || bad.LeftOut == nil && !f.partial {
		return f.refusal(bad, engine != nil)
	}
	kept, err := f.keepBad()
	if err != nil {
		return err
	}
	f.logLeftOut(bad.LeftOut)
	f.log.Warn("the state file was loaded in part", "file", f.path, "reason", "the file "+bad.Reason, "after_byte", bad.Offset, "keys", engine.Stats().Keys, "copy", kept)
	return nil
}

// refusal returns the error of a file that is not loaded. A file that is not a snapshot may be someone's, which no flag
// replaces.
func (f *stateFile) refusal(bad *weir.SnapshotError, snapshot bool) error {
	hints := []string{"nothing was loaded, and the file is unchanged"}
	if snapshot {
		hints = append(hints, "to start with the keys that can be read, add --state-partial, which keeps the file as "+f.path+badEnd)
	}
	hints = append(hints, "to start with empty state, move the file away or name another file")
	return cli.Fail(fmt.Errorf("serve: --state %s: the file %s (after byte %d)", f.path, bad.Reason, bad.Offset), hints...)
}

// mostLeftOut bounds the lines about states that were left out.
const mostLeftOut = 20

func (f *stateFile) logLeftOut(lines []string) {
	for _, line := range lines[:min(len(lines), mostLeftOut)] {
		f.log.Warn("states of the state file are not in force", "file", f.path, "states", line)
	}
	if more := len(lines) - mostLeftOut; more > 0 {
		f.log.Warn("states of more limits of the state file are not in force", "file", f.path, "limits", more)
	}
}

// badEnd is the end of the name of the copy of a file that was not loaded as a whole.
const badEnd = ".bad"

// keepBad copies the file, because the next save replaces it. It keeps only one copy, the first, and returns its name: a
// daemon that is restarted again and again must neither fill the disk nor lose that one.
func (f *stateFile) keepBad() (kept string, err error) {
	kept = f.path + badEnd
	if info, err := os.Lstat(kept); err == nil {
		f.log.Warn("an earlier copy is there already and stays; move it away to have the next one kept", "copy", kept, "made", info.ModTime())
		return "", nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return "", f.cannot("read", err)
	}
	defer func() { _ = file.Close() }()
	return kept, f.replace(kept, func(w io.Writer) error {
		_, err := io.Copy(w, file)
		return err
	})
}
