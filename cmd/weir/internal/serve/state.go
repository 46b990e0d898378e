package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/filelock"
)

// stateFile keeps the state of an engine in a file, so that a restart continues where the last run ended. The zero
// value keeps nothing.
type stateFile struct {
	path    string
	every   time.Duration // 0 saves only on a signal and at the end
	partial bool          // load what can be read of a damaged file
	log     *slog.Logger
	keys    int // bound on the keys of a limit; 0 is the engine's default
	lock    *os.File
	saves   upkeep
}

// defaultKeys is the default of weir.MemoryOptions.MaxKeys.
const defaultKeys = 10_000_000

func (f *stateFile) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.keys, "max-keys", defaultKeys, "keep at most `N` keys of each limit in memory; further keys share limits")
	flags.StringVar(&f.path, "state", "", "load the state from `FILE` at the start, and save it there")
	flags.BoolVar(&f.partial, "state-partial", false, "start with the readable part of a damaged --state file, and keep that file as FILE.bad")
	flags.DurationVar(&f.every, "state-every", 30*time.Second, "save the state this often, and at the stop; 0 saves only at the stop")
}

// check refuses flags that are out of bounds, and flags of the memory engine beside a shared engine.
func (f *stateFile) check(isSet func(flag string) bool, shared, pushed bool) error {
	switch {
	case f.every < 0:
		return cli.Misusef("use a duration of 0 or more, like 10s or 5m", "--state-every %v: a negative duration", f.every)
	case f.keys < 1:
		return cli.Misusef("a key takes up to 28 bytes; the default is "+strconv.Itoa(defaultKeys), "--max-keys %d: not a number of keys", f.keys)
	case shared && f.path != "" && !pushed: // pushed rules are in a file beside it
		return cli.Misusef("leave --state out; the server keeps the state across a restart as docs/howto/redis.md and docs/howto/sql.md say", "--state with --engine: the state is in the server")
	case shared && isSet("max-keys"):
		return cli.Misusef("leave --max-keys out; docs/howto/redis.md says how to bound the memory of Redis", "--max-keys with --engine: the keys are in the server")
	}
	for _, flag := range []string{"state-every", "state-partial"} {
		if f.path == "" && isSet(flag) {
			return cli.Misusef("name the file: --state weir.state", "--%s without --state", flag)
		}
	}
	return nil
}

// options returns the options of the engine, new or loaded.
func (f *stateFile) options() weir.MemoryOptions {
	return weir.MemoryOptions{MaxKeys: f.keys, Parent: networkOf, Logger: f.log}
}

// keepWhile saves at intervals while the daemon serves, and once more at the end.
func (f *stateFile) keepWhile(engine *weir.Memory, asked <-chan os.Signal, serve func() error) error {
	if f.path == "" {
		return serve()
	}
	serving, ended := context.WithCancel(context.Background())
	var keeping sync.WaitGroup
	keeping.Go(func() { f.keep(serving, engine, asked) })
	err := serve()
	ended()
	keeping.Wait()
	if unsaved := f.save(engine); unsaved != nil {
		return errors.Join(err, unsaved)
	}
	f.log.Info("state saved", "file", f.path)
	return err
}

// keep saves at every interval and at every signal until the context ends. It logs a failed save and tries again the
// next time.
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

// save replaces the file.
func (f *stateFile) save(engine *weir.Memory) error {
	if f.path == "" {
		return nil
	}
	err := f.replace(f.path, engine.Save)
	f.saves.note(err)
	return err
}

// replace writes a file beside the state atomically. A reader finds the old file or the new file, complete, even after a
// crash. The part file has a unique name, so that no other process writes to it on systems without locks.
func (f *stateFile) replace(path string, content func(io.Writer) error) error {
	folder, name := filepath.Split(f.path)
	folder = cmp.Or(folder, ".")
	part, err := os.CreateTemp(folder, name+".*"+partEnd) // mode 0600
	if err != nil {
		return f.cannot("write", err)
	}
	if err = write(part, content); err == nil {
		err = os.Rename(part.Name(), path)
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

// write writes the content to a file and closes the file. It returns the first error.
func write(file *os.File, content func(io.Writer) error) error {
	err := content(file)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// syncFolder makes a rename durable where the system can sync folders.
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

// cannot returns an error of the state file with a hint.
func (f *stateFile) cannot(verb string, err error) error {
	hint := "the folder must exist, and this user must be able to read and write in it"
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		hint = "the disk or this user's quota is full: make room, or name a file on another disk; the last saved file is kept"
	}
	return cli.Fail(fmt.Errorf("serve: --state %s: cannot %s it: %s", f.path, verb, strings.TrimPrefix(err.Error(), "weir: ")), hint)
}

// networkOf returns the network of a key that is an IP address: its /64 and then its /48 for IPv6, its /24 for IPv4.
// When there is no room for the key alone, it shares the limit of its network. A client with many addresses therefore
// gains nothing by using them all.
func networkOf(key string) (network string, ok bool) {
	if narrow, err := netip.ParsePrefix(key); err == nil {
		wide, err := narrow.Addr().Prefix(48)
		return wide.String(), err == nil && narrow.Bits() == 64
	}
	address, err := netip.ParseAddr(key)
	if err != nil {
		return "", false
	}
	bits := 64
	if address = address.Unmap(); address.Is4() {
		bits = 24
	}
	around, err := address.Prefix(bits)
	return around.String(), err == nil
}

// partEnd is the suffix of part files. Their names begin with the name of the state file and digits.
const partEnd = ".part"

// A starting daemon waits this long for the last save of a stopping one, and checks this often.
const (
	claimPatience = 10 * time.Second
	claimEvery    = 20 * time.Millisecond
)

// lockEnd is the end of the name of the file that a daemon locks.
const lockEnd = ".lock"

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
	lock, err := os.OpenFile(path+lockEnd, os.O_RDWR|os.O_CREATE, 0o600)
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
		digits = strings.TrimPrefix(strings.TrimPrefix(digits, "overrides."), "secret.") // of the files beside that of the states
		if isPart && isOurs && strings.Trim(digits, "0123456789") == "" {
			_ = os.Remove(folder + entry.Name())
		}
	}
}
