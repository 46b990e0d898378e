package table

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Wide is a layout of n words for tests. The first word decides whether an entry is idle. All others of an entry are
// equal to the first, and a conversion adds such words.
type Wide struct {
	N       int
	IsIdle  func(first uint64, now int64) bool
	Convert func(first uint64, into []uint64)
}

type wideLayout struct{ Wide }

func (l wideLayout) Width() int { return l.N }

func (l wideLayout) Idle(first uint64, _ []uint64, now int64) bool { return l.IsIdle(first, now) }

func (l wideLayout) Convert(_ Layout, first uint64, _, into []uint64) { l.Wide.Convert(first, into) }

// Layout returns the layout.
func (w Wide) Layout() Layout {
	if w.Convert == nil {
		w.Convert = func(first uint64, into []uint64) {
			for i := range into {
				into[i] = first
			}
		}
	}
	return wideLayout{w}
}

// addTo adds delta to all words of a hash, and reports whether there was room.
func addTo(t *Table, h Hash, now int64, delta uint64) bool {
	for {
		e := t.Claim(h, now)
		if e.None() {
			return false
		}
		if len(e.Words) == 1 {
			if first := e.First(); first < Seized && e.Swap(first, first+delta) {
				return true
			}
			continue
		}
		first, seized := e.Seize(false)
		if !seized {
			continue
		}
		for i := range e.Words[1:] {
			e.Words[1+i] += delta
		}
		e.Release(first + delta)
		return true
	}
}

func neverIdle(uint64, int64) bool { return false }

// TestWideEntriesAreNeverTornWhileTheyGrowAndTheirLayoutChanges adds to all words of few and many keys from several
// goroutines, while segments split and layouts of more words replace earlier ones.
func TestWideEntriesAreNeverTornWhileTheyGrowAndTheirLayoutChanges(t *testing.T) {
	const callers, keys, rounds = 4, 1500, 3
	for _, widths := range [][]int{{2}, {1, 2}, {1, 3, 8}} {
		tab := New(Options{Layout: Wide{N: widths[0], IsIdle: neverIdle}.Layout()})
		var mu sync.Mutex
		next := 1 // layout
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(c), 3))
				for range rounds {
					mu.Lock()
					if random.IntN(3) == 0 && next < len(widths) {
						tab.AddLayout(Wide{N: widths[next], IsIdle: neverIdle}.Layout())
						next++
					}
					mu.Unlock()
					for _, i := range random.Perm(keys) {
						addTo(tab, hashOf(i), 0, 1)
						addTo(tab, hashOf(i%3), 0, 1)
					}
				}
			})
		}
		wg.Wait()
		for i := range keys {
			want := uint64(callers * rounds)
			if i < 3 {
				want += callers * rounds * keys / 3
			}
			e := tab.Find(hashOf(i))
			if e.None() {
				t.Fatalf("widths %v: key %d is lost", widths, i)
			}
			for j, word := range e.Words {
				if word != want {
					t.Fatalf("widths %v: word %d of key %d is %d, want %d", widths, j, i, word, want)
				}
			}
		}
	}
}

func hashOf(i int) Hash { return Hash(uint64(i+1) * 0x9e3779b97f4a7c15) }

func TestANewLayoutReachesEveryEntryByUpgradeAndKeepsItsState(t *testing.T) {
	const keys = 30_000
	tab := New(Options{Layout: Wide{N: 1, IsIdle: neverIdle}.Layout()})
	for i := range keys {
		addTo(tab, hashOf(i), 0, uint64(i)+1)
	}
	number := tab.AddLayout(Wide{N: 3, IsIdle: neverIdle}.Layout())
	worst := 0
	tab.touched = func(s *segment) { worst = max(worst, int(s.room)) }
	for i := range keys {
		tab.Upgrade(hashOf(i), 0)
		if e := tab.Find(hashOf(i)); e.Layout != number || len(e.Words) != 3 || e.Words[2] != uint64(i)+1 {
			t.Fatalf("key %d has words %v of layout %d after the upgrade", i, e.Words, e.Layout)
		}
	}
	if worst == 0 || worst > MaxTouched {
		t.Errorf("an upgrade looked at %d entries, want at most %d", worst, MaxTouched)
	}
	if tab.Len() != keys {
		t.Errorf("Len is %d after the upgrades, want %d", tab.Len(), keys)
	}
}

func TestWideEntriesTakeFewBytesEach(t *testing.T) {
	const keys = 150_000
	for width, most := range map[int]int{1: 28, 2: 40, 3: 52} {
		tab, worst := New(Options{Layout: Wide{N: width, IsIdle: neverIdle}.Layout()}), 0
		for i := range keys {
			addTo(tab, hashOf(i), 0, 1)
			if i > keys/4 && i%1000 == 0 {
				worst = max(worst, tab.Bytes()/i)
			}
		}
		if worst > most {
			t.Errorf("an entry of %d words takes up to %d bytes, want at most %d", width, worst, most)
		}
	}
}

// TestASeizedEntryIsSeenByNoOtherCaller checks that the words of a seized entry belong to its caller, also while the
// segment is replaced.
func TestASeizedEntryIsSeenByNoOtherCaller(t *testing.T) {
	tab := New(Options{Layout: Wide{N: 2, IsIdle: neverIdle}.Layout()})
	addTo(tab, hashOf(1), 0, 7)
	e := tab.Find(hashOf(1))
	first, seized := e.Seize(false)
	if !seized || first != 7 || e.First() != Seized {
		t.Fatalf("Seize got %d, %v, want 7", first, seized)
	}
	number := tab.AddLayout(Wide{N: 3, IsIdle: neverIdle}.Layout())
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		tab.Upgrade(hashOf(1), 0)
		done.Store(true)
	})
	for range 1000 { // the upgrade cannot end while the entry is seized
		if done.Load() {
			t.Fatal("a seized entry was moved")
		}
	}
	e.Words[1] = 8
	e.Release(8)
	wg.Wait()
	if e := tab.Find(hashOf(1)); e.Layout != number || e.First() != 8 {
		t.Errorf("after the upgrade the entry is %v, want the words of its last holder", e.Words)
	}
	if _, seized := e.Seize(true); seized {
		t.Error("an entry that has moved was seized")
	}
}

// TestGrowthWaitsForASeizedEntry grows a segment of which a caller has seized an entry. The table must not copy the mark of a
// seized entry, and must copy what the caller releases.
func TestGrowthWaitsForASeizedEntry(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the other goroutine then runs until it waits or is done
	for width := 1; width <= 2; width++ {
		tab := New(Options{Layout: Wide{N: width, IsIdle: neverIdle}.Layout()})
		hash := func(i Hash) Hash { return i * 0x9e3779b97f4a7c15 << ShardBits } // of one shard
		key := hash(1)
		addTo(tab, key, 0, 1)
		e := tab.Find(key)
		first, seized := e.Seize(false)
		if !seized || first != 1 {
			t.Fatalf("width %d: the entry reads %#x, seized: %v, want 1, true", width, first, seized)
		}
		var done atomic.Bool
		var grown sync.WaitGroup
		grown.Go(func() {
			defer done.Store(true)
			for i := range Hash(100) {
				addTo(tab, hash(i+2), 0, 1)
			}
		})
		for yields := 0; yields < 1000 && !done.Load(); yields++ {
			runtime.Gosched()
		}
		if done.Load() {
			t.Errorf("width %d: the segment was replaced while a caller had seized an entry", width)
		}
		e.Release(7)
		grown.Wait()
		if got := tab.Find(key).First(); got != 7 {
			t.Errorf("width %d: the entry reads %#x after growth, the caller released it with 7", width, got)
		}
	}
}
