package serve

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

func recorderOf(t *testing.T, path string, o *recordOptions, log *lockedText) *recorder {
	t.Helper()
	o.path = path
	if o.share == "" {
		o.share = "100%"
	}
	o.size = max(o.size, 1)
	r, err := o.start(slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lockedText is a log that a test reads while the recorder writes.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func linesOf(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

func rule(t *testing.T) *weir.Rule {
	t.Helper()
	r, err := weir.ParseRule("default=60/m")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every key is recorded whole or not at all, and about the given share of them.
func TestARecordHoldsAShareOfTheKeysEachWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.jsonl")
	var log lockedText
	r := recorderOf(t, path, &recordOptions{share: "25%"}, &log)
	for range 3 {
		for key := range 2000 {
			r.take([]weir.Request{rule(t).For(fmt.Sprint(key), 1)}, true)
		}
	}
	r.stop()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]int{}
	for line := range strings.Lines(string(text)) {
		_, key, _ := strings.Cut(line, `"key":`)
		key, _, _ = strings.Cut(key, ",")
		keys[key]++
	}
	for key, n := range keys {
		if n != 3 {
			t.Errorf("key %s is recorded %d times of 3", key, n)
		}
	}
	if len(keys) < 400 || len(keys) > 600 {
		t.Errorf("%d of 2000 keys are recorded, want about 500", len(keys))
	}
}

// The lines of a call stand together, however many calls come at once, and no other call has their instant.
func TestACallIsRecordedTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.jsonl")
	var log lockedText
	r := recorderOf(t, path, &recordOptions{}, &log)
	var calls sync.WaitGroup
	for caller := range 8 {
		q := make([]weir.Request, 3)
		for i := range q {
			q[i] = rule(t).For(fmt.Sprint(caller, "-", i), 1)
		}
		calls.Go(func() {
			for range 200 {
				r.take(q, true)
			}
		})
	}
	calls.Wait()
	r.stop()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Collect(strings.Lines(string(text)))
	if len(all) != 8*200*3 {
		t.Fatalf("%d lines, want %d", len(all), 8*200*3)
	}
	seen := map[string]bool{}
	for call := range slices.Chunk(all, 3) {
		at, rest, _ := strings.Cut(call[0], ",")
		if seen[at] {
			t.Fatalf("two calls have the instant of %s", call[0])
		}
		seen[at] = true
		_, caller, _ := strings.Cut(rest, `"key":"`)
		caller, _, _ = strings.Cut(caller, "-")
		for i, line := range call {
			if !strings.HasPrefix(line, at) || !strings.Contains(line, fmt.Sprintf(`"key":"%s-%d"`, caller, i)) {
				t.Fatalf("the lines of a call are apart: %q", call)
			}
		}
	}
}

// A recording goes on after a line that a crash has cut short, in a file that only its owner may read.
func TestARecordGoesOnAfterACutLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.jsonl")
	if err := os.WriteFile(path, []byte(`{"time":`), 0o644); err != nil {
		t.Fatal(err)
	}
	var log lockedText
	r := recorderOf(t, path, &recordOptions{}, &log)
	r.take([]weir.Request{rule(t).For("alice", 1)}, true)
	r.stop()
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "{\"time\":\n{\"time\":\"") || linesOf(t, path) != 2 {
		t.Errorf("%v: the file has %q, want the cut line and another", err, text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("%v: the file has mode %v, want 0600", err, info.Mode())
	}
}

func TestARecordRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.jsonl")
	var log lockedText
	r := recorderOf(t, path, &recordOptions{size: 1, files: 2}, &log)
	long := strings.Repeat("k", 4000)
	const calls = 1200 // 4.9 MB: four full files, of which two are kept
	for range calls {
		r.take([]weir.Request{rule(t).For(long, 1)}, true)
	}
	r.stop()
	total := 0
	for i, name := range []string{path, path + ".1", path + ".2"} {
		n := linesOf(t, name)
		total += n
		if info, err := os.Stat(name); err != nil || info.Size() > 1_005_000 || i > 0 && info.Size() < 1_000_000 {
			t.Errorf("%s: %v, %v, want a megabyte", name, info.Size(), err)
		}
	}
	if _, err := os.Stat(path + ".3"); err == nil || total >= calls || total < 500 {
		t.Errorf("%d lines are kept, want the last two full files and the rest", total)
	}
}

// A disk that does not answer holds no call up: what does not fit the queue is counted as left out.
func TestARecordNeverBlocksACall(t *testing.T) {
	r := &recorder{bound: 1 << 32, seed: maphash.MakeSeed(), lines: &lines{queue: make(chan []byte, recordQueue)}}
	q := []weir.Request{rule(t).For("alice", 1)} // nothing reads the queue
	for range recordQueue + 100 {
		r.take(q, true)
	}
	if left := r.lines.lost.Load(); left != 100 || len(r.lines.queue) != recordQueue {
		t.Errorf("%d left out and %d in the queue, want 100 and %d", left, len(r.lines.queue), recordQueue)
	}
}

// A failure to write the file is logged once, and the file is written again when it can be.
func TestARecordOutlivesAFailingFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "sub", "record.jsonl")
	synctest.Test(t, func(t *testing.T) {
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var log lockedText
		var o recordOptions
		r := recorderOf(t, path, &o, &log)
		r.take([]weir.Request{rule(t).For(strings.Repeat("k", 1_000_000), 1)}, true) // the next line needs a new file
		synctest.Wait()
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		q := []weir.Request{rule(t).For("alice", 1)}
		for range 5 {
			r.take(q, true)
			time.Sleep(recordEvery)
		}
		synctest.Wait()
		if since := o.writes.fails(); since == "" {
			t.Error("the failure is told by no metric")
		}
		if n := strings.Count(log.String(), "cannot be written"); n != 1 {
			t.Errorf("the failure is logged %d times, want once: %s", n, &log)
		}
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * recordEvery)
		r.take(q, true)
		time.Sleep(2 * recordEvery)
		synctest.Wait()
		if n := linesOf(t, path); n != 1 {
			t.Errorf("%d lines after the file came back, want 1", n)
		}
		if !strings.Contains(log.String(), "written again") || !strings.Contains(log.String(), "left out of the record") {
			t.Errorf("the log says neither that the record is back nor what is missing: %s", &log)
		}
		r.stop()
	})
}

func TestARecorderStopsWhileCallsGoOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.jsonl")
	var log lockedText
	r := recorderOf(t, path, &recordOptions{}, &log)
	q := []weir.Request{rule(t).For("alice", 1)}
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for range 5000 {
				r.take(q, true)
			}
		})
	}
	r.stop()
	calls.Wait()
	if n := linesOf(t, path) + int(r.lines.lost.Load()) + len(r.lines.queue); n != 20_000 {
		t.Errorf("%d calls are recorded, left out or too late, want 20000", n)
	}
}
