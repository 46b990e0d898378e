package weir

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/memory"
	"github.com/weirflow/weir/internal/word"
)

func TestMaxKeysHasOneDefault(t *testing.T) {
	for given, want := range map[int]int{-1: defaultMaxKeys, 0: defaultMaxKeys, 1: 1, 5000: 5000} {
		keyed, err := NewKeyedWith[int](TokenBucket{Rate: PerSecond(1)}, Options{MaxKeys: given})
		if err != nil {
			t.Fatal(err)
		}
		if got := keyed.maxKeys; got != want {
			t.Errorf("Options.MaxKeys %d: a Keyed of %d keys, want %d", given, got, want)
		}
		if got := NewMemory(MemoryOptions{MaxKeys: given}).Stats().MaxKeys; got != want {
			t.Errorf("MemoryOptions.MaxKeys %d: a Memory of %d keys, want %d", given, got, want)
		}
	}
}

// SharingMemory is an engine in which no key finds room and every parent does. Unlike that of a Memory, its Reset
// also resets shared states.
type SharingMemory struct{ *Memory }

func NewSharingMemory(options MemoryOptions) SharingMemory {
	m, engineOptions := newMemory(options)
	engineOptions.MaxKeys = -1
	m.engine = memory.New(engineOptions)
	return SharingMemory{m}
}

func (m SharingMemory) Reset(ctx context.Context, requests ...Request) error {
	merged, err := m.merge(ctx, opReset, requests, 0, nil)
	if err != nil {
		return err
	}
	return m.engine.Reset(merged, true)
}

// machine has clocks that the test sets: since is its monotonic clock, and step the change of its wall clock.
type machine struct{ since, step atomic.Int64 }

const machineStart = int64(1_700_000_000_123_456_789)

func (m *machine) read() (since, wall int64) {
	since = m.since.Load()
	return since, machineStart + since + m.step.Load()
}

func (m *machine) wall() int64 {
	_, wall := m.read()
	return wall
}

func (m *machine) pass(d time.Duration) { m.since.Add(int64(d)) }
func (m *machine) set(d time.Duration)  { m.step.Add(int64(d)) }

// Once the clocks have met, a day's window ends at midnight of the wall clock again.
func TestDayWindowEndsAtMidnightAfterAJumpThatWasCorrected(t *testing.T) {
	m := &machine{}
	lim, err := New(FixedWindow{Rate: PerDay(1)})
	if err != nil {
		t.Fatal(err)
	}
	lim.clock = clock.NewOn(m.read)
	m.set(2 * time.Hour)
	m.pass(time.Second)
	lim.Allow()
	m.set(-2 * time.Hour)
	for range 3 * 24 {
		m.pass(time.Hour)
		lim.Allow()
	}
	untilMidnight := 24*time.Hour - time.Duration(m.wall())%(24*time.Hour)
	if got := lim.Peek(1).RetryAfter; got != untilMidnight {
		t.Errorf("the window ends in %v, want %v, at midnight", got, untilMidnight)
	}
}

// A caller may hold the limit from before a SetLimit when it finds no table.
func TestATableOfTheLimitBeforeGivesWay(t *testing.T) {
	before, after := Limit(TokenBucket{Rate: PerDay(5)}), Limit(FixedWindow{Rate: PerDay(5)})
	for _, after := range []Limit{after, RateGate{Rate: PerDay(5)}} {
		k, err := NewKeyed[int](before)
		if err != nil {
			t.Fatal(err)
		}
		late := k.limits.all.Load()
		if err := k.SetLimit(after); err != nil {
			t.Fatal(err)
		}
		k.tableFor(late, k.clock.Now())
		k.Allow(1)
		now := k.limits.all.Load()
		if table := k.table.Load(); table != nil && table.identity != now.identity {
			t.Errorf("%v: the table is one of %q", after, table.identity)
		}
		if table := k.table.Load(); now.words != nil && (!table.holds(now) || len(k.shard(k.hash(1)).subjects) != 0) {
			t.Errorf("%v: states are kept beside the table", after)
		}
		k.tableFor(late, k.clock.Now())
		if k.Len() != 1 || k.Take(1, 4).Remaining != 0 || k.Take(1, 1).Allowed {
			t.Errorf("%v: a late caller dropped the state of a key", after)
		}
	}
}

func TestSetLimitUnderRaceLeavesTheTableOfTheLastLimit(t *testing.T) {
	limits := []Limit{TokenBucket{Rate: PerSecond(1e6)}, FixedWindow{Rate: PerDay(1e9)}, SlidingWindow{Rate: PerDay(1e9)}}
	for round := range 200 {
		k, err := NewKeyed[int](limits[2])
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for caller := range 3 {
			all.Go(func() {
				for key := range 20 {
					k.Allow(key)
				}
			})
			all.Go(func() { _ = k.SetLimit(limits[caller%2]) })
		}
		all.Wait()
		k.Allow(1)
		if now := k.limits.all.Load(); !k.table.Load().holds(now) {
			t.Fatalf("round %d: the table does not hold the states of %v", round, now.limit)
		}
	}
}

// A Keyed may hold millions of logs, and a decision on one waits for the memory of its subject.
func TestASubjectOfAKeyedFillsTwoCacheLines(t *testing.T) {
	if size := unsafe.Sizeof(keyedSubject[[100]byte]{}); size > 128 {
		t.Errorf("%d bytes, want at most 128", size)
	}
}

// A table is in force before all subjects have their entries in it. Meanwhile nobody takes their keys for new ones.
func TestATableThatBeginsDoubtsKeysWithoutWords(t *testing.T) {
	k, err := NewKeyedWith[string](SlidingLog{Rate: PerHour(3)}, Options{Clock: func() int64 { return 1_700_000_000_000_000_000 }})
	if err != nil {
		t.Fatal(err)
	}
	k.Allow("a")
	if err := k.SetLimit(TokenBucket{Rate: PerHour(5), Burst: 5}); err != nil {
		t.Fatal(err)
	}
	limit, in := k.limits.all.Load(), word.NewTable(k.maxKeys)
	begun := &keyTable{in.Table, in.AddColumn(limit.words, k.clock.Now()), limit.identity}
	begun.words.Doubt(true)
	k.table.Store(begun)
	admitted := 0
	for range 20 {
		if k.Allow("a") {
			admitted++
		}
		k.Peek("a", 1)
	}
	if admitted != 5 {
		t.Errorf("%d units of a burst of 5", admitted)
	}
}

// everyIdentity returns limits of each kind, with periods in every form of text.
func everyIdentity() (limits []Limit) {
	for _, period := range []time.Duration{1, 999, time.Millisecond, 1500 * time.Millisecond, time.Second, 61 * time.Second, 90 * time.Minute,
		time.Hour + time.Second, 24 * time.Hour, 3 * 24 * time.Hour, 7 * 24 * time.Hour, 10 * 24 * time.Hour, 25*time.Hour + 1, MaxPeriod} {
		rate := Rate{Count: min(3, int64(period)), Period: period}
		limits = append(limits,
			TokenBucket{Rate: rate}, TokenBucket{Rate: rate, Burst: MaxCount}, LeakyBucket{Rate: rate, Queue: 5}, FixedWindow{Rate: rate},
			SlidingWindow{Rate: rate}, SlidingLog{Rate: rate, Gap: period / 2}, SlidingLog{Rate: rate, CountDenied: true}, RateGate{Rate: rate},
			Cycle{Rate: rate}, Cycle{Rate: rate, Origin: period / 3}, Cycle{Rate: rate, Origin: -1},
			Concurrency{Slots: 3}, Concurrency{Slots: 3, Lease: period})
	}
	return limits
}

// This test compares a limit with the limit made from its identity: name, capacity, and when states are idle.
func TestLimitsOfOneIdentityAreIdleAtTheSameTime(t *testing.T) {
	for _, limit := range everyIdentity() {
		a := limit.algorithm(nanoseconds)
		again, err := limitOf(identity(limit), a.Capacity())
		if err != nil || identity(again) != identity(limit) {
			t.Fatalf("%s: %q makes %v and error %v", limit, identity(limit), again, err)
		}
		b := again.algorithm(nanoseconds)
		now := int64(1_700_000_000_123_456_789)
		for _, n := range []int64{1, a.Capacity(), 3 * min(a.Capacity(), MaxCount/3)} {
			state := a.Take(a.Fresh(), now, n)
			left := a.Wait(state, now, a.Capacity()) // until it is idle
			for _, at := range []int64{now, algorithm.AddSaturating(now, left-1), algorithm.AddSaturating(now, left), algorithm.AddSaturating(now, algorithm.AddSaturating(left, 1))} {
				if got, want := algorithm.Idle(b, state, at), algorithm.Idle(a, state, at); got != want {
					t.Fatalf("%s after %d, %d ns later: %s finds it idle: %v, want %v", limit, n, at-now, again, got, want)
				}
			}
			wordsAreIdleAlike(t, limit, a, state, now, left)
		}
	}
}

// wordsAreIdleAlike does the same with words, which do not contain the capacity.
func wordsAreIdleAlike(t *testing.T, limit Limit, a algorithm.Algorithm, state algorithm.State, now, left int64) {
	words, ok := a.(algorithm.Worder)
	if !ok {
		return
	}
	one, err := limitOf(identity(limit), 1)
	if err != nil {
		t.Fatalf("%s: %v", limit, err)
	}
	other := one.algorithm(nanoseconds).(algorithm.Worder)
	base := now - word.Slack
	word, ok := words.Pack(state, base)
	if !ok {
		return
	}
	if cycle, ok := other.(*algorithm.Cycle); ok { // whose words are those of one number of permits
		other, _ = algorithm.WithRate(cycle, algorithm.RateOf(words))
	}
	for _, at := range []int64{now, algorithm.AddSaturating(now, left-1), algorithm.AddSaturating(now, left)} {
		if got, want := algorithm.IdleWord(other, word, base, at), algorithm.IdleWord(words, word, base, at); got != want {
			t.Fatalf("%s, %d ns later: %s finds word %#x idle: %v, want %v", limit, at-now, one, word, got, want)
		}
	}
	other, ok = algorithm.WithRate(other, algorithm.RateOf(words))
	if again, fits := other.Pack(other.Unpack(word, base), base); !ok || !fits || again != word {
		t.Fatalf("%s: word %#x is %#x under %s", limit, word, again, one)
	}
}

func TestIdentitiesOfNoLimitAreRefused(t *testing.T) {
	for _, identity := range []string{
		"", "bursty", "warm up", "token bucket/s", "fixed window", "fixed window/", "fixed window/1s", "fixed window/60s", "fixed window/-1s",
		"sliding window/s+1ms", "cycle/s+0s", "cycle/s+2s", "cycle/s+", "rate gate/9999w", "concurrency/s", "sliding log/x",
	} {
		if limit, err := limitOf(identity, 1); err == nil {
			t.Errorf("%q makes %s, want an error", identity, limit)
		}
	}
	for _, capacity := range []int64{0, -1, MaxCount + 1} {
		for _, limit := range everyIdentity()[:13] {
			if got, err := limitOf(identity(limit), capacity); err == nil {
				t.Errorf("%q with a capacity of %d makes %s, want an error", identity(limit), capacity, got)
			}
		}
	}
}
