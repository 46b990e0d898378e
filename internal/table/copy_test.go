package table_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirflow/weir/internal/table"
)

// copied returns all rows of a table of one word, shard by shard.
func copied(tab *table.Table) (all [table.Shards]table.Rows) {
	for shard := range all {
		var next uint64
		for again := true; again; again = next != 0 {
			var rows table.Rows
			rows, next = tab.Copy(shard, next, nil)
			all[shard] = table.Rows{Layout: rows.Layout, Data: append(all[shard].Data, rows.Data...)}
		}
	}
	return all
}

func TestCopyMeetsEveryHashOnce(t *testing.T) {
	for _, keys := range []int{0, 1, 700, 60_000} {
		tab := of(neverIdle, 0)
		random := rand.New(rand.NewPCG(uint64(keys), 1))
		want := map[table.Hash]uint64{}
		for range keys {
			h := table.Hash(random.Uint64())
			want[h] = 1 + random.Uint64N(1<<60)
			tab.Claim(h, 0).Release(want[h])
		}
		seen := 0
		for _, pairs := range copied(tab) {
			for h, words := range pairs.All {
				seen++
				if want[h] != words[0] {
					t.Fatalf("%d keys: copied %#x as %d, want %d", keys, h, words[0], want[h])
				}
			}
		}
		if seen != keys {
			t.Errorf("%d keys: %d copied", keys, seen)
		}
	}
}

// TestCopyMissesNothingWhileTheTableGrows copies repeatedly while other goroutines split every segment. Each copy has
// every original word once.
func TestCopyMissesNothingWhileTheTableGrows(t *testing.T) {
	const old = 5000
	tab := of(neverIdle, 0)
	random := rand.New(rand.NewPCG(3, 4))
	for i := range uint64(old) {
		add(t, tab, table.Hash(random.Uint64()), 0, i+1)
	}
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer done.Store(true)
		more := rand.New(rand.NewPCG(5, 6))
		for range 60_000 {
			add(t, tab, table.Hash(more.Uint64()), 0, old+1)
		}
	})
	for rounds := 0; rounds < 3 || !done.Load(); rounds++ {
		seen := map[uint64]int{}
		for _, pairs := range copied(tab) {
			for _, words := range pairs.All {
				seen[words[0]]++
			}
		}
		for i := range uint64(old) {
			if seen[i+1] != 1 {
				t.Fatalf("word %d was copied %d times, want once", i+1, seen[i+1])
			}
		}
	}
	wg.Wait()
}

// TestACopyWaitsForASeizedEntry copies a segment while a caller has seized an entry of one word.
func TestACopyWaitsForASeizedEntry(t *testing.T) {
	tab := of(neverIdle, 0)
	e := tab.Claim(5*table.Shards, 0)
	e.Release(1234)
	if first, seized := e.Seize(false); !seized || first != 1234 {
		t.Fatalf("Seize returns %d, %v", first, seized)
	}
	copied := make(chan []uint64)
	go func() {
		rows, _ := tab.Copy(0, 0, nil)
		copied <- rows.Data
	}()
	for range 10_000 {
		runtime.Gosched()
		select {
		case data := <-copied:
			t.Fatalf("the copy of a seized entry is %#x", data)
		default:
		}
	}
	e.Release(1235)
	if data := <-copied; len(data) != 2 || data[1] != 1235 {
		t.Errorf("the copy is %v, want the word 1235", data)
	}
}
