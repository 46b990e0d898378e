package weir_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

var updateFlag = flag.Bool("update", false, "write the kept snapshot, if there is none")

// keptAt is when the kept snapshot was saved: 20 s after a full minute.
const keptAt = int64(1_700_000_000_000_000_000)

// kept lists the limits of the kept snapshot, what was taken of key "k" and how long before the save, and the Peek
// 100 ms after the save, worked out by hand.
var kept = []struct {
	name  string
	limit weir.Limit
	taken []use
	want  weir.Decision // of a cost of 1
}{
	{"thirds", weir.TokenBucket{Rate: weir.PerSecond(3), Burst: 5}, []use{{0, 5, 0}},
		weir.Decision{Limit: 5, RetryAfter: 233_333_334, ResetAfter: 1_566_666_667}},
	{"elevenths", weir.TokenBucket{Rate: weir.PerMinute(11), Burst: 7}, []use{{0, 7, 0}},
		weir.Decision{Limit: 7, RetryAfter: 5_354_545_455, ResetAfter: 38_081_818_182}},
	{"leaky", weir.LeakyBucket{Rate: weir.PerSecond(7), Queue: 4}, []use{{0, 3, 0}},
		weir.Decision{Allowed: true, Limit: 5, Remaining: 2, ResetAfter: 328_571_429, Delay: 328_571_429}},
	{"fixed", weir.FixedWindow{Rate: weir.PerMinute(5)}, []use{{0, 5, 0}},
		weir.Decision{Limit: 5, RetryAfter: 39900 * time.Millisecond, ResetAfter: 39900 * time.Millisecond}},
	{"sliding", weir.SlidingWindow{Rate: weir.PerMinute(5)}, []use{{0, 5, 0}},
		weir.Decision{Limit: 5, RetryAfter: 51900 * time.Millisecond, ResetAfter: 99900 * time.Millisecond}},
	{"log", weir.SlidingLog{Rate: weir.Per(3, 10*time.Second), Gap: time.Second}, []use{{2 * time.Second, 1, 0}, {time.Second, 1, 0}, {0, 1, 0}},
		weir.Decision{Limit: 3, RetryAfter: 7900 * time.Millisecond, ResetAfter: 9900 * time.Millisecond}},
	{"counting", weir.SlidingLog{Rate: weir.Per(2, 10*time.Second), CountDenied: true}, []use{{2 * time.Second, 1, 0}, {time.Second, 1, 0}, {0, 1, 0}},
		weir.Decision{Limit: 2, RetryAfter: 8900 * time.Millisecond, ResetAfter: 9900 * time.Millisecond}},
	{"gate", weir.RateGate{Rate: weir.PerSecond(2)}, []use{{500 * time.Millisecond, 1, 0}, {0, 1, 0}},
		weir.Decision{Limit: 2, RetryAfter: 400 * time.Millisecond, ResetAfter: 900 * time.Millisecond}},
	{"cycle", weir.Cycle{Rate: weir.PerMinute(6), Origin: 5 * time.Second}, []use{{0, 9, 0}},
		weir.Decision{Limit: 6, RetryAfter: 44900 * time.Millisecond, ResetAfter: 104900 * time.Millisecond}},
	{"concurrency", weir.Concurrency{Slots: 3, Lease: 30 * time.Second}, []use{{10 * time.Second, 2, 7}, {0, 1, 0}},
		weir.Decision{Limit: 3, RetryAfter: 19900 * time.Millisecond, ResetAfter: 29900 * time.Millisecond}},
}

type use struct {
	before time.Duration
	cost   int64
	lease  uint64
}

// keptPath is a file that this version of the format wrote. It is never rewritten, because a change of the format
// needs a new version.
var keptPath = filepath.Join("testdata", "snapshot", "version8")

// TestTheKeptSnapshotCanBeLoaded holds the format: a change that cannot read the file needs a new version.
func TestTheKeptSnapshotCanBeLoaded(t *testing.T) {
	file, err := os.ReadFile(keptPath)
	if errors.Is(err, fs.ErrNotExist) && *updateFlag {
		file = writeKept(t, keptPath)
	} else if err != nil {
		t.Fatal(err)
	}
	now := keptAt + int64(100*time.Millisecond)
	m := loaded(t, file, func() int64 { return now })
	for _, k := range kept {
		q := mustRule(t, k.name, k.limit).For("k", 1)
		want := k.want
		want.Rule, want.Key = k.name, "k"
		if got, err := m.Peek(t.Context(), q); err != nil || got != want {
			t.Errorf("%s: got %+v and error %v, want %+v", k.limit, got, err, want)
		}
		if got, err := m.Peek(t.Context(), mustRule(t, k.name, k.limit).For("never seen", 1)); err != nil || !got.Allowed || got.ResetAfter != 0 {
			t.Errorf("%s: a key never seen got %+v and error %v", k.limit, got, err)
		}
	}
	leases := kept[len(kept)-1]
	q := mustRule(t, leases.name, leases.limit).For("k", 2)
	if d, err := leased(t, m, weir.OpReturn, 7, q); err != nil || d.Remaining != 2 {
		t.Errorf("releasing lease 7: got %+v and error %v, want 2 remaining", d, err)
	}
}

// leased makes a call with a lease.
func leased(t testing.TB, e weir.Engine, op weir.Op, lease uint64, requests ...weir.Request) (weir.Decision, error) {
	t.Helper()
	a, err := e.Do(t.Context(), weir.Call{Op: op, Lease: lease, Requests: requests})
	return a.Decision, err
}

func writeKept(t *testing.T, path string) []byte {
	var now int64
	m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
	for _, k := range kept {
		for _, use := range k.taken {
			now = keptAt - int64(use.before)
			q := mustRule(t, k.name, k.limit).For("k", use.cost)
			op := weir.OpTake
			if use.cost > 7 {
				op = weir.OpRecord // a debt
			}
			if _, err := leased(t, m, op, use.lease, q); err != nil {
				t.Fatal(err)
			}
		}
	}
	now = keptAt
	file := saved(t, m)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
