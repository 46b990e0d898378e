package weir_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

// everyLimit has one limit of each kind, and limits whose states do not fit in one word.
var everyLimit = []weir.Limit{
	weir.TokenBucket{Rate: weir.PerSecond(3), Burst: 5},
	weir.TokenBucket{Rate: weir.PerSecond(11), Burst: 7}, // a denominator that no word has
	weir.TokenBucket{Rate: weir.PerMinute(60)},
	weir.LeakyBucket{Rate: weir.PerSecond(7), Queue: 4, NoDelay: 1},
	weir.FixedWindow{Rate: weir.PerSecond(5)},
	weir.FixedWindow{Rate: weir.Per(40, 90*time.Minute)},
	weir.FirstWindow{Rate: weir.PerSecond(5)},
	weir.FirstWindow{Rate: weir.Per(2000, 90*time.Minute)}, // with more units than a word holds
	weir.SlidingWindow{Rate: weir.PerSecond(5)},
	weir.SlidingWindow{Rate: weir.Per(50, 1500*time.Millisecond)},
	weir.SlidingLog{Rate: weir.PerSecond(5), Gap: 10 * time.Millisecond},
	weir.SlidingLog{Rate: weir.PerSecond(5), CountDenied: true},
	weir.RateGate{Rate: weir.Per(4, 2*time.Second)},
	weir.Cycle{Rate: weir.PerSecond(6), Origin: 123 * time.Millisecond},
	weir.Cycle{Rate: weir.PerDay(9)},
	weir.Quota{Count: 9, Unit: weir.Day, Zone: "Asia/Tokyo"},
	weir.Quota{Count: 7, Unit: weir.Week, Zone: "America/New_York", Day: 3, At: 90 * time.Minute},
	weir.Unlimited{},
	weir.DenyAll{},
	weir.Concurrency{Slots: 5, Lease: 3 * time.Second},
	weir.Concurrency{Slots: 5},
}

// saved returns the snapshot of an engine.
func saved(t testing.TB, m *weir.Memory) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := m.Save(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// loaded returns the engine of a snapshot.
func loaded(t testing.TB, file []byte, clock func() int64) *weir.Memory {
	t.Helper()
	m, err := weir.LoadMemory(bytes.NewReader(file), weir.MemoryOptions{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSnapshotsChangeNoAnswer runs random operations on two engines. It saves and loads one of them again and again.
// In between, time passes, sometimes long enough for all states to become idle.
func TestSnapshotsChangeNoAnswer(t *testing.T) {
	random := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	now := int64(1_700_000_000_123_456_789)
	clock := func() int64 { return now }
	rules := make([]*weir.Rule, len(everyLimit))
	for i, limit := range everyLimit {
		rules[i] = mustRule(t, fmt.Sprint("r", i), limit)
	}
	rules = append(rules, mustRule(t, "both", everyLimit[0], everyLimit[4]), mustRule(t, "twice", everyLimit[0], everyLimit[2]))
	kept, other := weir.NewMemory(weir.MemoryOptions{Clock: clock}), weir.NewMemory(weir.MemoryOptions{Clock: clock})
	for op := range randtest.Rounds(t, 20_000, 2000) {
		now += random.Int64N(int64(3 * time.Millisecond))
		if random.IntN(300) == 0 {
			file := saved(t, other)
			now += []int64{0, 1, int64(time.Second), int64(3 * time.Hour)}[random.IntN(4)]
			other = loaded(t, file, clock)
		}
		rule := rules[random.IntN(len(rules))]
		q := rule.For(fmt.Sprint(random.IntN(20)), random.Int64N(5))
		lease := random.Uint64N(3)
		verb := []string{"take", "take", "peek", "record", "reset"}[random.IntN(4+random.IntN(10)/9)]
		if verb == "record" {
			q.Cost -= 2
		}
		if got, want := answerTo(other, verb, lease, q), answerTo(kept, verb, lease, q); got != want {
			t.Fatalf("operation %d, %s cost %d of key %s under %s at %d:\ngot  %s\nwant %s", op, verb, q.Cost, q.Key, rule, now, got, want)
		}
	}
}

func mustRule(t testing.TB, name string, limits ...weir.Limit) *weir.Rule {
	t.Helper()
	rule, err := weir.NewRule(name, limits...)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func answer(m *weir.Memory, verb string, q weir.Request) string { return answerTo(m, verb, 0, q) }

func answerTo(m *weir.Memory, verb string, lease uint64, q weir.Request) string {
	op := map[string]weir.Op{"take": weir.OpTake, "peek": weir.OpPeek, "record": weir.OpRecord, "reset": weir.OpReset}[verb]
	if op == weir.OpRecord && q.Cost < 0 {
		op, q.Cost = weir.OpReturn, -q.Cost
	}
	a, err := m.Do(context.Background(), weir.Call{Op: op, Lease: lease, Requests: []weir.Request{q}})
	return fmt.Sprintf("%+v %v", a.Decision, err)
}

// spend takes all units of a key, so that its later answers show the time.
func spend(t testing.TB, m *weir.Memory, q weir.Request) {
	t.Helper()
	if d, err := m.Take(context.Background(), q); err != nil || !d.Allowed {
		t.Fatalf("spending %d of %q: %+v, %v", q.Cost, q.Key, d, err)
	}
}

func TestLoadContinuesWithTheTimeThatPassed(t *testing.T) {
	for _, away := range []time.Duration{0, time.Nanosecond, 20 * time.Second, 59 * time.Second, 61 * time.Second, 100 * 365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerMinute(1)})
			m := weir.NewMemory(weir.MemoryOptions{})
			spend(t, m, rule.For("k", 1))
			file := saved(t, m)
			time.Sleep(away)
			d, err := loaded(t, file, nil).Peek(t.Context(), rule.For("k", 1))
			if want := max(0, time.Minute-away); err != nil || d.RetryAfter != want {
				t.Errorf("away for %v: got %+v and error %v, want RetryAfter %v", away, d, err, want)
			}
		})
	}
}

// This test loads after the wall clock was set back, and where the engine was ahead of it.
func TestLoadNeverGoesBackInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerMinute(1)})
		m := weir.NewMemory(weir.MemoryOptions{})
		spend(t, m, rule.For("k", 1))
		file := saved(t, m)
		for _, at := range clockOffsets(file) { // as if it was saved an hour from now
			wall := binary.LittleEndian.Uint64(file[at+8:])
			binary.LittleEndian.PutUint64(file[at+8:], wall+uint64(time.Hour))
		}
		m = loaded(t, sealed(file), nil)
		time.Sleep(20 * time.Second)
		d, err := m.Peek(t.Context(), rule.For("k", 1))
		if err != nil || d.RetryAfter != 40*time.Second {
			t.Errorf("got %+v and error %v, want RetryAfter 40s: what has passed since the load", d, err)
		}
	})
}

// clockOffsets returns the places of the two pairs of clocks in a snapshot.
func clockOffsets(file []byte) [2]int { return [2]int{8 + 4 + 32, len(file) - 4 - 8 - 16} }

// sealed returns a snapshot with a correct checksum.
func sealed(file []byte) []byte {
	body := bytes.Clone(file[:len(file)-4])
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

func TestIdleKeysAreNotSavedNorLoaded(t *testing.T) {
	now := int64(1_700_000_000_123_456_789)
	clock := func() int64 { return now }
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	fresh := len(saved(t, m))
	for i, limit := range everyLimit[:len(everyLimit)-1] { // slots without a lease are never idle
		for k := range 50 {
			answer(m, "take", mustRule(t, fmt.Sprint("r", i), limit).For(fmt.Sprint("k", k), 1))
		}
	}
	busy := saved(t, m)
	now += int64(20 * 24 * time.Hour) // a quota is kept for longer than its week
	if got := len(saved(t, m)); got != fresh {
		t.Errorf("the snapshot of idle keys has %d bytes, that of none %d, that of busy ones %d", got, fresh, len(busy))
	}
	if got := len(saved(t, loaded(t, busy, clock))); got != fresh {
		t.Errorf("busy keys, loaded when they are idle, take %d bytes, none take %d", got, fresh)
	}
}

// TestLoadedStatesOfUnusedRulesAreEvicted fills shards with other keys until they look for idle ones.
func TestLoadedStatesOfUnusedRulesAreEvicted(t *testing.T) {
	now := int64(1_700_000_000_123_456_789)
	clock := func() int64 { return now }
	for _, limit := range everyLimit[:len(everyLimit)-1] {
		m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
		rule := mustRule(t, "old", limit)
		for k := range 4000 {
			if _, err := m.Record(t.Context(), rule.For(fmt.Sprint(k), 2)); err != nil {
				t.Fatal(err)
			}
		}
		file := saved(t, m)
		m = loaded(t, file, clock)
		if got := len(saved(t, m)); got != len(file) {
			t.Errorf("%s: %d bytes after a load, want %d", limit, got, len(file))
		}
		now += int64(20 * 24 * time.Hour) // a quota is kept for longer than its week
		fresh := len(saved(t, weir.NewMemory(weir.MemoryOptions{Clock: clock})))
		if got := len(saved(t, m)); got != fresh {
			t.Errorf("%s: %d bytes once all is idle, want %d", limit, got, fresh)
		}
	}
}

// TestOldBasesOfWordsAreReplaced loads a snapshot so late that words would soon not fit.
func TestOldBasesOfWordsAreReplaced(t *testing.T) {
	now := int64(1_700_000_000_123_456_789)
	clock := func() int64 { return now }
	year := int64(weir.MaxPeriod)
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.Per(3, weir.MaxPeriod)}, weir.FixedWindow{Rate: weir.Per(3, weir.MaxPeriod)}, weir.SlidingWindow{Rate: weir.Per(3, weir.MaxPeriod)},
	} {
		rule := mustRule(t, "r", limit)
		m, kept := weir.NewMemory(weir.MemoryOptions{Clock: clock}), weir.NewMemory(weir.MemoryOptions{Clock: clock})
		for range 60 {
			now += year / 3
			for _, verb := range []string{"take", "peek"} {
				if got, want := answer(m, verb, rule.For("k", 1)), answer(kept, verb, rule.For("k", 1)); got != want {
					t.Fatalf("%s at %d: got %s, want %s", limit, now, got, want)
				}
			}
			m = loaded(t, saved(t, m), clock)
		}
	}
}

// TestSaveRunsBesideDecisions takes and saves at once. The snapshot of a key lies between what was taken before the
// save and after it.
func TestSaveRunsBesideDecisions(t *testing.T) {
	const keys, most = 300, 1 << 40
	clock := func() int64 { return 1_700_000_000_000_000_000 }
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	// The states of the second go back and forth between words and cells.
	rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.Per(most, weir.MaxPeriod)}, weir.SlidingWindow{Rate: weir.Per(1<<30+500, weir.MaxPeriod)})
	requests := make([]weir.Request, keys)
	for k := range requests {
		requests[k] = rule.For(fmt.Sprint("key ", k), 1)
		if _, err := m.Record(t.Context(), rule.For(requests[k].Key, 1<<30-200)); err != nil {
			t.Fatal(err)
		}
	}
	used := func(m *weir.Memory, k int) int64 {
		d, err := m.Peek(context.Background(), mustRule(t, "r", weir.FixedWindow{Rate: weir.Per(most, weir.MaxPeriod)}).For(requests[k].Key, 0))
		if err != nil {
			t.Error(err)
		}
		return most - d.Remaining
	}
	stop := make(chan bool)
	var callers sync.WaitGroup
	for range 2 {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(1, 1))
			for {
				select {
				case <-stop:
					return
				default:
				}
				q := requests[random.IntN(keys)]
				if d, err := m.Take(context.Background(), q); err == nil && !d.Allowed {
					q.Cost = -300
					_, _ = m.Record(context.Background(), q)
				}
			}
		})
	}
	for range 30 {
		loaded := loaded(t, saved(t, m), clock)
		for k := range keys {
			// The exact count is unknown, but it was never below this.
			if got := used(loaded, k); got < 1<<30-200 || got > 1<<30+500 {
				t.Fatalf("key %d: %d used in the snapshot, want %d to %d", k, got, 1<<30-200, 1<<30+500)
			}
		}
	}
	close(stop)
	callers.Wait()
}

// sample returns a snapshot with every kind of record.
func sample(t testing.TB) []byte {
	m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 1_700_000_000_123_456_789 }})
	for i, limit := range everyLimit {
		for k := range 2 {
			q := mustRule(t, fmt.Sprint("r", i), limit).For(fmt.Sprint("key", k), 1)
			if _, err := leased(t, m, weir.OpTake, uint64(k), q); err != nil {
				t.Fatal(err)
			}
		}
	}
	return saved(t, m)
}

// snapshotStep is the distance of the bytes at which a snapshot is cut or damaged. It is larger in a short run, as below the race
// detector, under which to read a snapshot takes ten times as long.
func snapshotStep() int {
	if testing.Short() {
		return 11
	}
	return 1
}

func TestIncompleteSnapshotsAreRefused(t *testing.T) {
	file := sample(t)
	version := bytes.Clone(file)
	version[8]++
	for name, tt := range map[string]struct {
		file []byte
		want string
	}{
		"empty":    {nil, "the snapshot ends too early"},
		"foreign":  {[]byte(strings.Repeat("PK\x03\x04", 30)), `is none: it does not begin with "weirsnap"`},
		"later":    {sealed(version), "is of version 2, and this program reads version 1"},
		"too long": {append(bytes.Clone(file), 0), "goes on after its end"},
	} {
		m, err := weir.LoadMemory(bytes.NewReader(tt.file), weir.MemoryOptions{})
		if !isWhole(err, false) || !strings.Contains(err.Error(), tt.want) || (m == nil) != (name == "foreign") {
			t.Errorf("%s: got %v and engine %v, want %q", name, err, m, tt.want)
		}
	}
	for length := 0; length < len(file); length += snapshotStep() {
		if _, err := weir.LoadMemory(bytes.NewReader(file[:length]), weir.MemoryOptions{}); !isWhole(err, false) {
			t.Fatalf("the first %d of %d bytes: got error %v, want a SnapshotError", length, len(file), err)
		}
	}
	for at := 0; at < len(file); at += snapshotStep() {
		damaged := bytes.Clone(file)
		damaged[at] ^= 1 << (at % 8)
		if _, err := weir.LoadMemory(bytes.NewReader(damaged), weir.MemoryOptions{}); !isWhole(err, false) {
			t.Fatalf("byte %d of %d changed: got error %v, want a SnapshotError", at, len(file), err)
		}
	}
}

// isWhole reports whether an error is that of a snapshot, and of a complete one or not.
func isWhole(err error, whole bool) bool {
	bad, ok := errors.AsType[*weir.SnapshotError](err)
	return ok && (bad.LeftOut != nil) == whole
}

func TestErrorsOfReadingAndWritingAreHandedOn(t *testing.T) {
	broken := errors.New("the disk is broken")
	file := sample(t)
	for _, length := range []int{0, 20, len(file) - 5, len(file)} {
		r := io.MultiReader(bytes.NewReader(file[:length]), iotest.ErrReader(broken))
		if _, err := weir.LoadMemory(r, weir.MemoryOptions{}); !errors.Is(err, broken) || isA[*weir.SnapshotError](err) {
			t.Errorf("reading fails after %d of %d bytes: got %v", length, len(file), err)
		}
	}
	if err := loaded(t, file, nil).Save(failingWriter{broken}); !errors.Is(err, broken) {
		t.Errorf("writing fails: got %v", err)
	}
	if _, err := weir.LoadMemory(iotest.OneByteReader(bytes.NewReader(file)), weir.MemoryOptions{}); err != nil {
		t.Errorf("read byte by byte: %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// FuzzLoadMemory gives each input a correct checksum; otherwise it would find little else. A loaded engine, also one that
// lacks states, must answer, and be saved and loaded again.
func FuzzLoadMemory(f *testing.F) {
	f.Add(sample(f))
	f.Add(saved(f, weir.NewMemory(weir.MemoryOptions{})))
	kept, err := os.ReadFile(keptPath)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(kept)
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) < 4 {
			return
		}
		clock := func() int64 { return 1_700_000_000_123_456_789 }
		m, err := weir.LoadMemory(bytes.NewReader(sealed(file)), weir.MemoryOptions{Clock: clock})
		if err != nil && !isA[*weir.SnapshotError](err) {
			t.Fatalf("got %v, want a SnapshotError", err)
		}
		if m == nil {
			return
		}
		for i, limit := range everyLimit {
			rule := mustRule(t, fmt.Sprint("r", i), limit)
			for _, verb := range []string{"peek", "take", "record"} {
				answer(m, verb, rule.For("key0", 1))
			}
		}
		loaded(t, saved(t, m), clock)
	})
}

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
		weir.Decision{Cause: weir.ByCount, Limit: 5, RetryAfter: 233_333_334, ResetAfter: 1_566_666_667}},
	{"elevenths", weir.TokenBucket{Rate: weir.PerMinute(11), Burst: 7}, []use{{0, 7, 0}},
		weir.Decision{Cause: weir.ByCount, Limit: 7, RetryAfter: 5_354_545_455, ResetAfter: 38_081_818_182}},
	{"leaky", weir.LeakyBucket{Rate: weir.PerSecond(7), Queue: 4}, []use{{0, 3, 0}},
		weir.Decision{Allowed: true, Limit: 5, Remaining: 2, ResetAfter: 328_571_429, Delay: 328_571_429}},
	{"fixed", weir.FixedWindow{Rate: weir.PerMinute(5)}, []use{{0, 5, 0}},
		weir.Decision{Cause: weir.ByCount, Limit: 5, RetryAfter: 39900 * time.Millisecond, ResetAfter: 39900 * time.Millisecond}},
	{"sliding", weir.SlidingWindow{Rate: weir.PerMinute(5)}, []use{{0, 5, 0}},
		weir.Decision{Cause: weir.ByCount, Limit: 5, RetryAfter: 51900 * time.Millisecond, ResetAfter: 99900 * time.Millisecond}},
	{"log", weir.SlidingLog{Rate: weir.Per(3, 10*time.Second), Gap: time.Second}, []use{{2 * time.Second, 1, 0}, {time.Second, 1, 0}, {0, 1, 0}},
		weir.Decision{Cause: weir.ByCount, Limit: 3, RetryAfter: 7900 * time.Millisecond, ResetAfter: 9900 * time.Millisecond}},
	{"counting", weir.SlidingLog{Rate: weir.Per(2, 10*time.Second), CountDenied: true}, []use{{2 * time.Second, 1, 0}, {time.Second, 1, 0}, {0, 1, 0}},
		weir.Decision{Cause: weir.ByCount, Limit: 2, RetryAfter: 8900 * time.Millisecond, ResetAfter: 9900 * time.Millisecond}},
	{"gate", weir.RateGate{Rate: weir.PerSecond(2)}, []use{{500 * time.Millisecond, 1, 0}, {0, 1, 0}},
		weir.Decision{Cause: weir.ByCount, Limit: 2, RetryAfter: 400 * time.Millisecond, ResetAfter: 900 * time.Millisecond}},
	{"cycle", weir.Cycle{Rate: weir.PerMinute(6), Origin: 5 * time.Second}, []use{{0, 9, 0}},
		weir.Decision{Cause: weir.ByCount, Limit: 6, RetryAfter: 44900 * time.Millisecond, ResetAfter: 104900 * time.Millisecond}},
	{"concurrency", weir.Concurrency{Slots: 3, Lease: 30 * time.Second}, []use{{10 * time.Second, 2, 7}, {0, 1, 0}},
		weir.Decision{Cause: weir.ByCount, Limit: 3, RetryAfter: 19900 * time.Millisecond, ResetAfter: 29900 * time.Millisecond}},
}

type use struct {
	before time.Duration
	cost   int64
	lease  uint64
}

// keptPath is a file that this version of the format wrote. It is never rewritten, because a change of the format
// needs a new version.
var keptPath = filepath.Join("testdata", "snapshot", "version1")

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
		want.Rule, want.Key, want.LimitReset = k.name, "k", want.ResetAfter
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

// BenchmarkSnapshot saves and loads token buckets by the million. Ten million
// take 2 GB of memory: go test -run '^$' -bench 'Snapshot/.*10000000' .
func BenchmarkSnapshot(b *testing.B) {
	for _, keys := range []int{1_000_000, 10_000_000} {
		now := time.Now().UnixNano()
		clock := func() int64 { return now }
		m := weir.NewMemory(weir.MemoryOptions{Clock: clock, MaxKeys: 2 * keys})
		rule := mustRule(b, "r", weir.TokenBucket{Rate: weir.PerHour(20), Burst: 20})
		filled := false
		fill := func() []byte {
			for k := 0; k < keys && !filled; k++ {
				if d, err := m.Take(context.Background(), rule.For(fmt.Sprint("user", k), 1)); err != nil || !d.Allowed {
					b.Fatalf("key %d: %+v, %v", k, d, err)
				}
			}
			filled = true
			return saved(b, m)
		}
		b.Run(fmt.Sprintf("save/%d", keys), func(b *testing.B) {
			file := bytes.NewBuffer(fill()[:0])
			for b.Loop() {
				file.Reset()
				if err := m.Save(file); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(file.Len())/float64(keys), "bytes/key")
		})
		b.Run(fmt.Sprintf("load/%d", keys), func(b *testing.B) {
			file := fill()
			for b.Loop() {
				loaded(b, file, clock)
			}
		})
	}
}
