// Package table maps hashes of keys to a few words of state each. It stores no keys, and no pointers for the garbage
// collector to follow.
//
// The table uses open addressing in small segments. An entry belongs to one hash for the life of its segment, so a
// caller that has found the entry works on its words alone: by compare-and-swap if there is one word, and otherwise
// while it has seized the entry (see Entry). When a segment is full, one caller freezes it entry by entry, which sends all
// other callers to the shard's lock, and copies the live words into one or two new segments. Growing, shrinking,
// eviction and changes of the layout therefore touch one or two segments at a time. Copying drops idle entries, which
// mean the same as a new key.
//
// In a decision, the caller claims the entry with Claim, decides on its words, and writes them. It starts again when
// it finds Moved.
package table

import (
	"math"
	"sync/atomic"
)

// Hash stands for a key. All its bits distinguish keys and choose their place, so a hash must look random.
type Hash uint64

// Snapshots depend on these values. A change needs a new version of the snapshot format.
const (
	// ShardBits is the number of low bits of a hash that choose its shard.
	ShardBits = 6
	// Shards is the number of shards of a table.
	Shards = 1 << ShardBits
	// SecretBytes is the length of a seed's secret.
	SecretBytes = 32
	// MaxKey is the longest key in bytes.
	MaxKey = 4096
)

// The sizes of segments. A call probes at most one segment. A full-size segment with its counting entry fills a size
// class of the allocator. Segments of 511 entries would halve the longest pauses, but a collection of ten million keys takes twice
// as long with them.
const (
	minSlots     = 8
	segmentSlots = 895

	// MaxTouched bounds the entries that one call reads, for hashes that look random.
	MaxTouched = 1024
)

// Options configure a Table.
type Options struct {
	// Layout is the first layout of the entries.
	Layout Layout
	// MaxKeys bounds the entries in use; 0 means no bound, and less than 0 no room. The shards get equal parts of it.
	MaxKeys int
}

// Table maps hashes to words. It is safe for concurrent use.
type Table struct {
	layouts atomic.Pointer[[]Layout] // by number; only ever appended to
	swept   atomic.Int64
	doubted atomic.Bool
	dropped atomic.Uint64
	touched func(*segment) // for tests: called with every segment that is read as a whole
	shards  [Shards]shard
}

// New returns an empty table, which allocates as keys arrive.
func New(options Options) *Table {
	t := &Table{}
	t.layouts.Store(&[]Layout{options.Layout})
	t.swept.Store(math.MinInt64)
	for i := range t.shards {
		t.shards[i].sweptAt.Store(math.MinInt64)
	}
	t.Bound(options.MaxKeys)
	return t
}

// Bound replaces Options.MaxKeys, before the table is shared.
func (t *Table) Bound(maxKeys int) {
	for i := range t.shards {
		t.shards[i].maxUsed = math.MaxInt64
		if maxKeys != 0 {
			t.shards[i].maxUsed = int64(Part(maxKeys, i))
		}
	}
}

// Part returns the share of the i-th shard in a bound on keys.
func Part(keys, i int) int {
	part := keys / Shards
	if i < keys%Shards {
		part++
	}
	return part
}

// AddLayout makes a layout the newest and returns its number. Entries get it when their segment is next replaced, or
// by Upgrade. The caller does not call AddLayout twice at a time, and adds at most 255 layouts.
func (t *Table) AddLayout(l Layout) (number uint8) {
	layouts := *t.layouts.Load()
	number = uint8(len(layouts))
	layouts = append(layouts[:len(layouts):len(layouts)], l)
	t.layouts.Store(&layouts)
	return number
}

func (t *Table) newest() numbered {
	layouts := *t.layouts.Load()
	return numbered{layouts[len(layouts)-1], uint8(len(layouts) - 1)}
}

// Upgrade gives the segment of a hash the newest layout. Entries that the caller has found there have Moved.
func (t *Table) Upgrade(h Hash, now int64) {
	h = valid(h)
	s := &t.shards[h%Shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.directory.Load()
	if d == nil {
		return
	}
	if at := d.index(h); d.places[at].layout != t.newest().number {
		s.directory.Store(t.replace(s, d, at, now))
	}
}

// Swept returns when the table last dropped an idle entry. A missing key may have been in use
// before it.
func (t *Table) Swept() int64 { return t.swept.Load() }

// Forgotten records that idle keys were forgotten at an instant: entries that were dropped, or states that were stored
// elsewhere.
func (t *Table) Forgotten(at int64) {
	for swept := t.swept.Load(); at > swept && !t.swept.CompareAndSwap(swept, at); swept = t.swept.Load() {
	}
}

// Doubt says whether keys without an entry may have a state elsewhere, while their owner is still making the entries.
func (t *Table) Doubt(doubted bool) { t.doubted.Store(doubted) }

// Doubted returns what Doubt said last.
func (t *Table) Doubted() bool { return t.doubted.Load() }

// Dropped returns the number of idle entries that the table has dropped.
func (t *Table) Dropped() uint64 { return t.dropped.Load() }

// Find returns the entry of a hash, if there is one.
func (t *Table) Find(h Hash) Entry {
	h = valid(h)
	s := &t.shards[h%Shards]
	for {
		d := s.directory.Load()
		if d == nil {
			return Entry{}
		}
		e, stale := d.segment(h).find(h)
		if !stale {
			return e
		}
		s.settle()
	}
}

// Claim returns the entry of a hash and inserts one for a new hash. It returns none if MaxKeys leaves no room for a
// new hash. At the bound it usually takes no lock, because a shard searches for idle words at most once in
// SweepEvery.
func (t *Table) Claim(h Hash, now int64) Entry {
	h = valid(h)
	s := &t.shards[h%Shards]
	if d := s.directory.Load(); d != nil {
		// About two of three known hashes are in their first place.
		segment := d.segment(h)
		if i := segment.first(h); atomic.LoadUint64(segment.tag(i)) == uint64(h) {
			return segment.entry(i)
		}
	}
	return t.claim(s, h, now)
}

func (t *Table) claim(s *shard, h Hash, now int64) Entry {
	for tidied := false; ; {
		d := s.directory.Load()
		if d != nil {
			e, due := d.segment(h).claim(h, s)
			if due && !tidied {
				tidied = true
				t.tidy(s, now)
				continue // it may have replaced the segment of h
			}
			if !e.None() {
				return e
			}
			if s.crowded(d, h, now) {
				return Entry{}
			}
		}
		if !t.makeRoom(s, d, h, now) {
			return Entry{}
		}
	}
}

// Len returns the number of entries in use, including idle ones.
func (t *Table) Len() (n int) {
	for i := range t.shards {
		n += int(t.shards[i].used.Load())
	}
	return n
}

// Bytes returns the memory of the entries.
func (t *Table) Bytes() (n int) {
	for i := range t.shards {
		if d := t.shards[i].directory.Load(); d != nil {
			for s := range d.all {
				n += 8 * len(s.slots)
			}
		}
	}
	return n
}

// crowded reports whether h is unknown and the shard can neither hold it nor search for room now.
func (s *shard) crowded(d *directory, h Hash, now int64) bool {
	if s.used.Load() < s.maxUsed || s.maySweep(now) {
		return false
	}
	e, stale := d.segment(h).find(h)
	return e.None() && !stale
}
