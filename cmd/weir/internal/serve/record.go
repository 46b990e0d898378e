package serve

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// recordOptions are the flags of recording.
type recordOptions struct {
	path  string
	share string
	size  int // megabytes
	files int
	hash  bool

	writes upkeep
}

func (o *recordOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.path, "record", "", "write each request to `FILE`, as JSON lines that weir replay reads")
	flags.StringVar(&o.share, "record-share", "100%", "record this `SHARE` of the keys, each of them whole")
	flags.IntVar(&o.size, "record-size", 100, "begin a new file after `N` megabytes")
	flags.IntVar(&o.files, "record-files", 5, "keep `N` full files: FILE.1 is the newest")
	flags.BoolVar(&o.hash, "record-hash", false, "record hashes instead of keys, with a secret that ends with the process")
}

// check refuses flags that are out of bounds, or that need --record.
func (o *recordOptions) check(isSet func(flag string) bool) error {
	share, err := strconv.ParseFloat(strings.TrimSuffix(o.share, "%"), 64)
	switch {
	case o.path == "":
		for _, flag := range []string{"record-share", "record-size", "record-files", "record-hash"} {
			if isSet(flag) {
				return cli.Misuse(fmt.Errorf("--%s without --record", flag), "name the file: --record record.jsonl")
			}
		}
	case err != nil || !strings.HasSuffix(o.share, "%") || !(share > 0 && share <= 100):
		return cli.Misuse(fmt.Errorf("--record-share: %q is not above 0%% and at most 100%%", o.share), "a share looks like 10%")
	case o.size < 1 || o.size > 1_000_000:
		return cli.Misuse(fmt.Errorf("--record-size: %d is not within 1 and 1000000 megabytes", o.size), "a recorded request takes about 100 bytes")
	case o.files < 0 || o.files > 1000:
		return cli.Misuse(fmt.Errorf("--record-files: %d is not within 0 and 1000", o.files), "0 keeps only the file that is being written")
	}
	return nil
}

// recorder writes what the daemon is asked. A decision never waits for the disk: if it is too slow, calls are left out, and their
// requests counted.
type recorder struct {
	bound  uint64 // keys whose hash is above are left out
	seed   maphash.Seed
	secret []byte // nil: keys are written as they are
	lines  *lines

	mu   sync.Mutex // the lines of a call stand together
	last time.Time  // no other call has the instant of a call
}

// recorded is one line of the file.
type recorded struct {
	Time    time.Time `json:"time"`
	Rule    string    `json:"rule"`
	Key     string    `json:"key"`
	Cost    int64     `json:"cost"`
	Allowed bool      `json:"allowed"`
	Hashed  bool      `json:"hashed,omitempty"` // the key is a hash
}

const (
	recordQueue    = 8192
	recordEvery    = time.Second // between two attempts at a file that fails, and between two reports
	recordPatience = 10 * time.Second
)

// begin starts a recorder if there is a --record. It returns what to call for each decision, and at the end.
func (o *recordOptions) begin(log *slog.Logger) (asked func([]weir.Request, bool), stop func(), err error) {
	if o.path == "" {
		return nil, func() {}, nil
	}
	r, err := o.start(log)
	if err != nil {
		return nil, nil, err
	}
	return r.take, r.stop, nil
}

// start opens the file, so that a wrong name fails now, and begins to write.
func (o *recordOptions) start(log *slog.Logger) (*recorder, error) {
	file := &recordFile{recordOptions: o, log: log}
	if err := file.open(); err != nil {
		return nil, cli.Fail(fmt.Errorf("serve: --record: %w", err), "name a file in a folder that exists and that this user may write to")
	}
	share, _ := strconv.ParseFloat(strings.TrimSuffix(o.share, "%"), 64)
	r := &recorder{seed: maphash.MakeSeed(), bound: uint64(share / 100 * math.MaxUint32)}
	if o.hash {
		r.secret = make([]byte, 32)
		_, _ = rand.Read(r.secret) // never fails
	}
	var reported time.Time
	r.lines = newLines(file, recordQueue, func(lost int64) bool {
		if time.Since(reported) < recordEvery {
			return false
		}
		reported = time.Now()
		log.Warn("requests are left out of the record", "requests", lost)
		return true
	})
	return r, nil
}

// take notes a call. It waits for no disk.
func (r *recorder) take(requests []weir.Request, allowed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.lines.room(len(requests)) {
		return
	}
	now := time.Now()
	if !now.After(r.last) {
		now = r.last.Add(time.Nanosecond)
	}
	r.last = now
	for _, q := range requests {
		if maphash.String(r.seed, q.Key)&math.MaxUint32 > r.bound {
			continue
		}
		if r.secret != nil {
			mac := hmac.New(sha256.New, r.secret)
			_, _ = io.WriteString(mac, q.Key)
			q.Key = hex.EncodeToString(mac.Sum(nil)[:16])
		}
		text, _ := json.Marshal(recorded{now, q.Rule.Name(), q.Key, q.Cost, allowed, r.secret != nil}) // fails only after the year 9999
		_, _ = r.lines.Write(append(text, '\n'))
	}
}

// stop writes what was noted, and ends. Later calls are left out.
func (r *recorder) stop() { r.lines.end(recordPatience) }

// recordFile is the file of --record, and the full ones.
type recordFile struct {
	*recordOptions
	log     *slog.Logger
	file    *os.File // nil after an error
	written int64
	failed  time.Time // the last attempt; zero while the file can be written
}

var errRecordFails = errors.New("the record cannot be written")

// Write writes a line. It logs when the file begins to fail and when it works again.
func (f *recordFile) Write(line []byte) (int, error) {
	failing := !f.failed.IsZero()
	if failing && time.Since(f.failed) < recordEvery {
		return 0, errRecordFails
	}
	err := f.write(line)
	f.writes.note(err)
	if err != nil {
		if !failing {
			f.log.Warn("the record cannot be written; requests are left out until it can", "error", err)
		}
		f.failed = time.Now()
		f.close()
		return 0, err
	}
	if failing {
		f.log.Info("the record is written again", "file", f.path)
	}
	f.failed = time.Time{}
	return len(line), nil
}

func (f *recordFile) write(line []byte) error {
	if f.file != nil && f.written >= int64(f.size)*1_000_000 {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	if f.file == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	n, err := f.file.Write(line)
	f.written += int64(n)
	return err
}

// open opens the file, which only its owner may read. After a line that a crash has cut short, it begins a new one.
func (f *recordFile) open() error {
	if info, err := os.Stat(f.path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", f.path) // a pipe would wait for its reader
	}
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	f.file, f.written = file, 0
	if err := errors.Join(file.Chmod(0o600), f.endLine()); err != nil {
		f.close()
		return err
	}
	return nil
}

// endLine ends the last line of the file if nothing has.
func (f *recordFile) endLine() error {
	info, err := f.file.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	f.written = info.Size()
	var last [1]byte
	if _, err := f.file.ReadAt(last[:], f.written-1); err != nil || last[0] == '\n' {
		return err
	}
	n, err := f.file.Write([]byte{'\n'})
	f.written += int64(n)
	return err
}

func (f *recordFile) close() {
	_ = f.file.Close() // it has failed, or nothing of it waits to be written
	f.file = nil
}

// rotate closes FILE and renames it to FILE.1, FILE.1 to FILE.2 and so on, and removes the oldest.
func (f *recordFile) rotate() error {
	f.close()
	name := func(i int) string {
		if i == 0 {
			return f.path
		}
		return f.path + "." + strconv.Itoa(i)
	}
	err := os.Remove(name(f.files))
	for i := f.files - 1; i >= 0 && (err == nil || errors.Is(err, os.ErrNotExist)); i-- {
		err = os.Rename(name(i), name(i+1))
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
