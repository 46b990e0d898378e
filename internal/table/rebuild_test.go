package table

import (
	"math/rand/v2"
	"testing"
)

// words returns a table whose words are the instants from which they are idle.
func words(options Options) *Table {
	options.Layout = Wide{N: 1, IsIdle: func(word uint64, now int64) bool { return int64(word) <= now }}.Layout()
	return New(options)
}

const forever = 1 << 60

func claim(t *testing.T, tab *Table, h Hash, now int64) bool {
	t.Helper()
	for {
		e := tab.Claim(h, now)
		if e.None() {
			return false
		}
		if old := e.First(); old != Moved && e.Swap(old, forever) {
			return true
		}
	}
}

// badHashes are families of hashes that share nearly all bits.
var badHashes = map[string]func(i uint64) Hash{
	"one shard":                  func(i uint64) Hash { return Hash(i * 0x9e3779b97f4a7c15 << ShardBits) },
	"all directory bits":         func(i uint64) Hash { return Hash(i<<32 | 7) },
	"where the search begins":    func(i uint64) Hash { return Hash(i + 2) },
	"all but a few bits":         func(i uint64) Hash { return Hash(1<<63 | i<<50 | 5) },
	"all but one directory bit":  func(i uint64) Hash { return Hash(i>>1<<40 | i&1<<20 | 3) },
	"tags that have a meaning":   func(i uint64) Hash { return Hash(i<<20 + i%2) },
	"directory and search begin": func(i uint64) Hash { return Hash(i<<18 | 1<<62 | 9) },
}

func TestBadHashesAreDistinguishedInBoundedMemory(t *testing.T) {
	for name, hash := range badHashes {
		t.Run(name, func(t *testing.T) {
			const keys = 2000
			tab, want := words(Options{}), map[Hash]uint64{}
			for i := range uint64(keys) {
				h := hash(i)
				if !claim(t, tab, h, 0) {
					t.Fatalf("no room for hash %d without a cap", i)
				}
				tab.Find(h).Release(forever + i)
				want[valid(h)] = forever + i
			}
			for h, word := range want {
				if e := tab.Find(h); e.None() || e.First() != word {
					t.Fatalf("hash %#x is lost or another's", h)
				}
			}
			if tab.Len() != len(want) {
				t.Errorf("%d in use, want %d", tab.Len(), len(want))
			}
			for i := range tab.shards {
				if d := tab.shards[i].directory.Load(); d != nil && len(d.places) > keys {
					t.Errorf("the directory of shard %d has %d entries for %d keys", i, len(d.places), keys)
				}
			}
		})
	}
}

func TestCapIsNeverPassedAndAlwaysReached(t *testing.T) {
	for _, most := range []int{1, 63, 64, 1000, 20_000} {
		tab, random, held := words(Options{MaxKeys: most}), rand.New(rand.NewPCG(1, uint64(most))), 0
		for range 10*most + 10_000 {
			if claim(t, tab, Hash(random.Uint64()), 0) {
				held++
			}
		}
		if held != most || tab.Len() != most {
			t.Errorf("a cap of %d held %d keys, Len %d", most, held, tab.Len())
		}
	}
}

func TestRoomOfIdleWordsComesBackAtTheCap(t *testing.T) {
	const most = 20_000
	tab, random := words(Options{MaxKeys: most}), rand.New(rand.NewPCG(2, 3))
	for tab.Len() < most {
		claim(t, tab, Hash(random.Uint64()), 0)
	}
	held := 0
	for now := int64(forever); held < most && now < forever+1000*SweepEvery; now += SweepEvery {
		for range 2000 {
			if e := tab.Claim(Hash(random.Uint64()), now); !e.None() {
				e.Release(2 * forever)
				held++
			}
		}
	}
	if held != most || tab.Dropped() != most {
		t.Errorf("%d new keys after all were idle, %d dropped, want %d", held, tab.Dropped(), most)
	}
}

func TestNoCallLooksAtMoreThanMaxTouchedSlots(t *testing.T) {
	for _, most := range []int{0, 50_000} {
		tab, random := words(Options{MaxKeys: most}), rand.New(rand.NewPCG(4, 5))
		seen, worst := map[*uint64]int{}, 0
		tab.touched = func(s *segment) { seen[&s.slots[0]] = int(s.room) }
		for i := range 80_000 {
			now := int64(i) * SweepEvery / 64
			if e := tab.Claim(Hash(random.Uint64()), now); !e.None() {
				// Half of the words stay, and half become idle soon.
				e.Release(uint64(now) + uint64(i%2)*forever + 1)
			}
			sum := 0
			for _, slots := range seen {
				sum += slots
			}
			worst = max(worst, sum)
			clear(seen)
		}
		if worst == 0 || worst > MaxTouched {
			t.Errorf("cap %d: one call looked at %d slots, want at most %d", most, worst, MaxTouched)
		}
	}
}
