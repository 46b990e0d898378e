package table_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/weirflow/weir/internal/table"
)

// neverIdle keeps every word except Fresh.
func neverIdle(uint64, int64) bool { return false }

// of returns a table of one word for each hash.
func of(idle func(word uint64, now int64) bool, maxKeys int) *table.Table {
	return table.New(table.Options{Layout: table.Wide{N: 1, IsIdle: idle}.Layout(), MaxKeys: maxKeys})
}

// idleBefore reads a word as the instant from which it is idle.
func idleBefore(word uint64, now int64) bool { return int64(word) <= now }

func add(t testing.TB, tab *table.Table, h table.Hash, now int64, delta uint64) {
	for {
		e := tab.Claim(h, now)
		if e.None() {
			t.Fatalf("no room for %x", h)
		}
		old := e.First()
		if old == table.Moved {
			continue
		}
		if e.Swap(old, old+delta) {
			return
		}
	}
}

func TestEveryWordSurvivesGrowth(t *testing.T) {
	const keys = 60_000
	tab := of(neverIdle, 0)
	random := rand.New(rand.NewPCG(1, 2))
	hashes := make([]table.Hash, keys)
	for i := range hashes {
		hashes[i] = table.Hash(random.Uint64())
		add(t, tab, hashes[i], 0, uint64(i)+1)
	}
	for i, h := range hashes {
		if e := tab.Find(h); e.None() || e.First() != uint64(i)+1 {
			t.Fatalf("hash %d of %d is lost or changed: %v", i, keys, e)
		}
	}
	if n := tab.Len(); n != keys {
		t.Errorf("Len is %d, want %d", n, keys)
	}
	if per := float64(tab.Bytes()) / keys; per > 28 {
		t.Errorf("%.1f bytes per key, want at most 28", per)
	}
	seen := map[table.Hash]bool{}
	for _, pairs := range copied(tab) {
		for h := range pairs.All {
			seen[h] = true
		}
	}
	if len(seen) != keys {
		t.Errorf("copied %d hashes, want %d", len(seen), keys)
	}
}

func TestConcurrentCountsAreExactWhileSegmentsSplit(t *testing.T) {
	const (
		callers = 8
		keys    = 20_000
		rounds  = 5
	)
	tab := of(neverIdle, 0)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(c), 3))
			for range rounds {
				for _, i := range random.Perm(keys) {
					add(t, tab, table.Hash(uint64(i)*0x9e3779b97f4a7c15), 0, 1)
				}
			}
		})
	}
	wg.Wait()
	for i := range keys {
		h := table.Hash(uint64(i) * 0x9e3779b97f4a7c15)
		if e := tab.Find(h); e.None() || e.First() != callers*rounds {
			t.Fatalf("key %d was counted %v times, want %d", i, e, callers*rounds)
		}
	}
}

func TestIdleWordsAreForgottenAndTheirSpaceComesBack(t *testing.T) {
	tab := of(idleBefore, 0)
	random := rand.New(rand.NewPCG(5, 6))
	const keys = 300_000
	for now := range int64(keys) {
		add(t, tab, table.Hash(random.Uint64()), now, uint64(now)+1000)
	}
	if n := tab.Len(); n > 50_000 {
		t.Errorf("%d slots in use where 1000 are not idle", n)
	}
	if tab.Swept() < keys/2 {
		t.Errorf("Swept is %d, want an instant near %d", tab.Swept(), keys)
	}
}

func TestCapRefusesNewHashesAndKeepsKnownOnes(t *testing.T) {
	const most = 32_000
	tab := of(neverIdle, most)
	random := rand.New(rand.NewPCG(7, 8))
	var known []table.Hash
	refused := 0
	for range 2 * most {
		h := table.Hash(random.Uint64())
		e := tab.Claim(h, 0)
		if e.None() {
			refused++
			continue
		}
		e.Release(1)
		known = append(known, h)
	}
	if refused == 0 || len(known) > most*3/2 || len(known) < most/2 {
		t.Errorf("%d known and %d refused at a cap of %d", len(known), refused, most)
	}
	for _, h := range known {
		if tab.Claim(h, 0).None() {
			t.Fatal("a known hash is refused at the cap")
		}
	}
}

func BenchmarkClaimKnown(b *testing.B) {
	for _, keys := range []int{1, 10_000, 1_000_000} {
		tab := of(neverIdle, 0)
		for i := range keys {
			add(b, tab, table.Hash(uint64(i)*0x9e3779b97f4a7c15), 0, 1)
		}
		random := rand.New(rand.NewPCG(1, 1))
		order := make([]table.Hash, 1<<20)
		for i := range order {
			order[i] = table.Hash(uint64(random.IntN(keys)) * 0x9e3779b97f4a7c15)
		}
		b.Run("", func(b *testing.B) {
			i := 0
			for b.Loop() {
				e := tab.Claim(order[i&(1<<20-1)], 0)
				e.Swap(e.First(), uint64(i)+1)
				i++
			}
		})
	}
}

// BenchmarkClaimNew inserts a million new hashes into a table that grows. The figures are for one hash.
func BenchmarkClaimNew(b *testing.B) {
	const keys = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		tab := of(neverIdle, 0)
		for i := range uint64(keys) {
			tab.Claim(table.Hash((i+1)*0x9e3779b97f4a7c15), 0).Release(i + 1)
		}
	}
	runtime.ReadMemStats(&after)
	perKey := func(x float64) float64 { return x / keys / float64(b.N) }
	b.ReportMetric(perKey(float64(b.Elapsed().Nanoseconds())), "ns/key")
	b.ReportMetric(perKey(float64(after.TotalAlloc-before.TotalAlloc)), "B/key")
	b.ReportMetric(perKey(float64(after.Mallocs-before.Mallocs)), "allocs/key")
	b.ReportMetric(0, "ns/op")
}
