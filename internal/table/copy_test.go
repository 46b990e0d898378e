package table_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirflow/weir/internal/table"
)

// copied returns all pairs of a table, shard by shard.
func copied(tab *table.Table) (pairs [table.Shards][]table.Pair) {
	for shard := range pairs {
		var next uint64
		for again := true; again; again = next != 0 {
			pairs[shard], next = tab.Copy(shard, next, pairs[shard])
		}
	}
	return pairs
}

func TestCopyMeetsEveryHashOnceAndFillBringsItBack(t *testing.T) {
	for _, keys := range []int{0, 1, 700, 60_000} {
		tab := table.New(table.Options{Idle: neverIdle})
		random := rand.New(rand.NewPCG(uint64(keys), 1))
		want := map[table.Hash]uint64{}
		for range keys {
			h := table.Hash(random.Uint64())
			want[h] = 1 + random.Uint64N(1<<60)
			tab.Claim(h, 0).Store(want[h])
		}
		filled := table.New(table.Options{Idle: neverIdle})
		seen := 0
		for shard, pairs := range copied(tab) {
			seen += len(pairs)
			for _, p := range pairs {
				if want[p.Hash] != p.Word {
					t.Fatalf("%d keys: copied %#x as %d, want %d", keys, p.Hash, p.Word, want[p.Hash])
				}
			}
			if err := filled.Fill(shard, pairs); err != nil {
				t.Fatalf("%d keys: %v", keys, err)
			}
		}
		if seen != keys || filled.Len() != keys {
			t.Errorf("%d keys: %d copied, %d filled", keys, seen, filled.Len())
		}
		for h, word := range want {
			if at := filled.Find(h); at == nil || at.Load() != word {
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
	tab := table.New(table.Options{Idle: neverIdle})
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
			for _, p := range pairs {
				seen[p.Word]++
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
	tab := table.New(table.Options{Idle: neverIdle, MaxKeys: 64})
	random := rand.New(rand.NewPCG(1, 2))
	var pairs [table.Shards][]table.Pair
	for range 60_000 {
		h := table.Hash(random.Uint64())
		pairs[h%table.Shards] = append(pairs[h%table.Shards], table.Pair{Hash: h, Word: 7})
	}
	for shard := range pairs {
		if err := tab.Fill(shard, pairs[shard]); err != nil {
			t.Fatal(err)
		}
	}
	if tab.Claim(pairs[5][5].Hash, 0).Load() != 7 {
		t.Error("a filled hash is not known above the cap")
	}
	free := table.New(table.Options{Idle: neverIdle})
	for shard := range pairs {
		if err := free.Fill(shard, pairs[shard]); err != nil {
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

func TestFillLetsElsewhereWin(t *testing.T) {
	tab := table.New(table.Options{Idle: neverIdle})
	if err := tab.Fill(0, []table.Pair{{64, 5}, {128, table.Elsewhere}, {64, table.Elsewhere}, {128, 9}}); err != nil {
		t.Fatal(err)
	}
	for _, h := range []table.Hash{64, 128} {
		if got := tab.Find(h).Load(); got != table.Elsewhere {
			t.Errorf("hash %d reads %#x, want Elsewhere", h, got)
		}
	}
}

func TestFillRefusesWhatNoTableHolds(t *testing.T) {
	crowded := make([]table.Pair, 1000)
	for i := range crowded {
		crowded[i] = table.Pair{Hash: table.Hash(i+1) << 40, Word: 1}
	}
	for name, tt := range map[string]struct {
		pairs []table.Pair
		want  string
	}{
		"twice":           {[]table.Pair{{64, 5}, {64, 6}}, "comes twice"},
		"another shard":   {[]table.Pair{{65, 5}}, "is not of shard 0"},
		"the tag of free": {[]table.Pair{{0, 5}}, "is not of shard 0"},
		"fresh":           {[]table.Pair{{64, table.Fresh}}, "word 0x0 is none"},
		"moved":           {[]table.Pair{{64, table.Moved}}, "is none"},
		"no hashes":       {crowded, "hashes share"},
	} {
		tab := table.New(table.Options{Idle: neverIdle})
		if err := tab.Fill(0, tt.pairs); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
		if tab.Len() != 0 {
			t.Errorf("%s: %d hashes in use after a refused Fill", name, tab.Len())
		}
	}
}
