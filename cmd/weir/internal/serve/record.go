package serve

import (
	"bufio"
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
	"sync/atomic"
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
}

func (o *recordOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.path, "record", "", "write what is asked to `FILE`, as JSON lines that weir replay reads")
	flags.StringVar(&o.share, "record-share", "100%", "record this `SHARE` of the keys, each of them whole")
	flags.IntVar(&o.size, "record-size", 100, "begin a new file after `N` megabytes")
	flags.IntVar(&o.files, "record-files", 5, "keep `N` full files: FILE.1 is the newest")
	flags.BoolVar(&o.hash, "record-hash", false, "record hashes instead of keys, with a secret that ends with the process")
}

// check refuses flags that are out of bounds, or that need --record.
func (o *recordOptions) check(isSet func(flag string) bool) error {
	share, err := strconv.ParseFloat(strings.TrimSuffix(o.share, "%"), 64)
	switch {
	case o.path == "" && isSet("record"):
		return cli.Misuse(errors.New("--record '': not a file name"), "name the file: --record record.jsonl")
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

// recorder writes what the daemon is asked. A decision never waits for it: if the disk is too slow, requests are left
// out and counted.
type recorder struct {
	recordOptions
	bound   uint64 // keys whose hash is above are left out
	seed    maphash.Seed
	secret  []byte // nil: keys are written as they are
	log     *slog.Logger
	asked   chan recorded
	left    atomic.Uint64 // out
	ending  chan struct{}
	stopped chan struct{}

	file    *os.File // nil after an error
	out     *bufio.Writer
	written int64
	failing bool
}

// recorded is one line of the file.
type recorded struct {
	Time    time.Time `json:"time"`
	Rule    string    `json:"rule"`
	Key     string    `json:"key"`
	Cost    int64     `json:"cost"`
	Allowed bool      `json:"allowed"`
}

const (
	recordQueue = 8192
	recordEvery = time.Second // how long a line may stay in memory
)

// begin starts a recorder if there is a --record. It returns what to call for each decision, and at the end.
func (o recordOptions) begin(log *slog.Logger) (asked func([]weir.Request, bool), stop func(), err error) {
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
func (o recordOptions) start(log *slog.Logger) (*recorder, error) {
	share, _ := strconv.ParseFloat(strings.TrimSuffix(o.share, "%"), 64)
	r := &recorder{recordOptions: o, seed: maphash.MakeSeed(), log: log, asked: make(chan recorded, recordQueue), ending: make(chan struct{}), stopped: make(chan struct{})}
	r.bound = uint64(share / 100 * math.MaxUint32)
	if o.hash {
		r.secret = make([]byte, 32)
		_, _ = rand.Read(r.secret) // never fails
	}
	if err := r.open(); err != nil {
		return nil, cli.Fail(fmt.Errorf("serve: --record: %w", err), "name a file in a folder that exists and that this user may write to")
	}
	go r.write(time.NewTicker(recordEvery))
	return r, nil
}

// take notes a call. It never blocks.
func (r *recorder) take(requests []weir.Request, allowed bool) {
	now := time.Now()
	for _, q := range requests {
		if maphash.String(r.seed, q.Key)&math.MaxUint32 > r.bound {
			continue
		}
		select {
		case r.asked <- recorded{now, q.Rule.Name(), q.Key, q.Cost, allowed}:
		default:
			r.left.Add(1)
		}
	}
}

// stop writes what was noted, and ends. Later calls are left out.
func (r *recorder) stop() {
	close(r.ending)
	<-r.stopped
}

// write runs until stop.
func (r *recorder) write(tick *time.Ticker) {
	defer close(r.stopped)
	defer tick.Stop()
	reported := uint64(0)
	for {
		select {
		case one := <-r.asked:
			r.settle(r.line(one))
		case <-r.ending:
			for range len(r.asked) {
				r.settle(r.line(<-r.asked))
			}
			r.settle(r.flush())
			r.close()
			return
		case <-tick.C:
			r.settle(r.flush())
			if left := r.left.Load(); left > reported {
				r.log.Warn("requests are left out of the record", "requests", left-reported)
				reported = left
			}
		}
	}
}

// settle logs when the file begins to fail and when it works again.
func (r *recorder) settle(err error) {
	switch {
	case err != nil && !r.failing:
		r.log.Warn("the record cannot be written; requests are left out until it can", "error", err)
	case err == nil && r.failing && r.file != nil:
		r.log.Info("the record is written again", "file", r.path)
	}
	if err != nil {
		r.close()
	}
	r.failing = err != nil || r.failing && r.file == nil
}

func (r *recorder) line(one recorded) error {
	if r.file == nil {
		r.left.Add(1)
		return nil
	}
	if r.secret != nil {
		mac := hmac.New(sha256.New, r.secret)
		_, _ = io.WriteString(mac, one.Key)
		one.Key = hex.EncodeToString(mac.Sum(nil)[:16])
	}
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	n, err := r.out.Write(append(text, '\n'))
	r.written += int64(n)
	if err == nil && r.written >= int64(r.size)*1_000_000 {
		return r.rotate()
	}
	return err
}

// flush writes to the disk, or tries to open a file that failed.
func (r *recorder) flush() error {
	if r.file == nil {
		return r.open()
	}
	return r.out.Flush()
}

func (r *recorder) open() error {
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	r.file, r.out, r.written = file, bufio.NewWriterSize(file, 1<<16), info.Size()
	return nil
}

func (r *recorder) close() {
	if r.file != nil {
		_ = r.file.Close() // a flush came before, or the file has failed
		r.file = nil
	}
}

// rotate renames FILE to FILE.1, FILE.1 to FILE.2 and so on, and removes the oldest.
func (r *recorder) rotate() error {
	err := r.out.Flush()
	r.close()
	if err != nil {
		return err
	}
	name := func(i int) string {
		if i == 0 {
			return r.path
		}
		return r.path + "." + strconv.Itoa(i)
	}
	if err := os.Remove(name(r.files)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for i := r.files - 1; i >= 0; i-- {
		if err := os.Rename(name(i), name(i+1)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return r.open()
}
