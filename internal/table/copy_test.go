package table_test

import (
	"math/rand/v2"
	"runtime"
	"strings"
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

func TestCopyMeetsEveryHashOnceAndFillBringsItBack(t *testing.T) {
	for _, keys := range []int{0, 1, 700, 60_000} {
		tab := of(neverIdle, 0)
		random := rand.New(rand.NewPCG(uint64(keys), 1))
		want := map[table.Hash]uint64{}
		for range keys {
			h := table.Hash(random.Uint64())
			want[h] = 1 + random.Uint64N(1<<60)
			tab.Claim(h, 0).Release(want[h])
		}
		filled := of(neverIdle, 0)
		seen := 0
		for shard, pairs := range copied(tab) {
			for h, words := range pairs.All {
				seen++
				if want[h] != words[0] {
					t.Fatalf("%d keys: copied %#x as %d, want %d", keys, h, words[0], want[h])
				}
			}
			if err := filled.Fill(shard, pairs.Data, nil); err != nil {
				t.Fatalf("%d keys: %v", keys, err)
			}
		}
		if seen != keys || filled.Len() != keys {
			t.Errorf("%d keys: %d copied, %d filled", keys, seen, filled.Len())
		}
		for h, word := range want {
			if e := filled.Find(h); e.None() || e.First() != word {
				t.Fatalf("%d keys: %#x is not %d after Fill", keys, h, word)
			}
		}
		if bytes := filled.Bytes(); keys > 1e5 && bytes > 28*keys {
			t.Errorf("%d keys take %d bytes after Fill, want at most 28 each", keys, bytes)
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

func TestFilledTablesGrowOn(t *testing.T) {
	tab := of(neverIdle, 64)
	random := rand.New(rand.NewPCG(1, 2))
	var pairs [table.Shards][]uint64
	for range 60_000 {
		h := table.Hash(random.Uint64())
		pairs[h%table.Shards] = append(pairs[h%table.Shards], uint64(h), 7)
	}
	for shard := range pairs {
		if err := tab.Fill(shard, pairs[shard], nil); err != nil {
			t.Fatal(err)
		}
	}
	if tab.Claim(table.Hash(pairs[5][10]), 0).First() != 7 {
		t.Error("a filled hash is not known above the cap")
	}
	free := of(neverIdle, 0)
	for shard := range pairs {
		if err := free.Fill(shard, pairs[shard], nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 60_000 {
		add(t, free, table.Hash(random.Uint64()), 0, 1)
	}
	if got := free.Len(); got != 120_000 {
		t.Errorf("%d hashes in use, want 120000", got)
	}
}

func TestFillMarksWhatIsElsewhere(t *testing.T) {
	tab := of(neverIdle, 0)
	if err := tab.Fill(0, []uint64{64, 5, 192, 9}, []table.Mark{{Hash: 64}, {Hash: 128}}); err != nil {
		t.Fatal(err)
	}
	for _, h := range []table.Hash{64, 128} {
		if got := tab.Find(h).First(); got != table.Elsewhere {
			t.Errorf("hash %d reads %#x, want Elsewhere", h, got)
		}
	}
}

func TestFillRefusesWhatNoTableHolds(t *testing.T) {
	var crowded []uint64
	for i := range uint64(1000) {
		crowded = append(crowded, (i+1)<<40, 1)
	}
	for name, tt := range map[string]struct {
		rows []uint64
		want string
	}{
		"twice":           {[]uint64{64, 5, 64, 6}, "comes twice"},
		"another shard":   {[]uint64{65, 5}, "is not of shard 0"},
		"the tag of free": {[]uint64{0, 5}, "is not of shard 0"},
		"fresh":           {[]uint64{64, table.Fresh}, "word 0x0 is none"},
		"moved":           {[]uint64{64, table.Moved}, "is none"},
		"no hashes":       {crowded, "hashes share"},
	} {
		tab := of(neverIdle, 0)
		if err := tab.Fill(0, tt.rows, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
		if tab.Len() != 0 {
			t.Errorf("%s: %d hashes in use after a refused Fill", name, tab.Len())
		}
	}
}

// TestACopyWaitsForAHeldEntry copies a segment while a caller holds an entry of one word.
func TestACopyWaitsForAHeldEntry(t *testing.T) {
	tab := of(neverIdle, 0)
	e := tab.Claim(5*table.Shards, 0)
	e.Release(1234)
	if first, held := e.Hold(false); !held || first != 1234 {
		t.Fatalf("Hold returns %d, %v", first, held)
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
			t.Fatalf("the copy of a held entry is %#x", data)
		default:
		}
	}
	e.Release(1235)
	if data := <-copied; len(data) != 2 || data[1] != 1235 {
		t.Errorf("the copy is %v, want the word 1235", data)
	}
}
