package weir

import (
	"sync"
	"testing"
	"unsafe"

	"github.com/weirflow/weir/internal/word"
)

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
