// Package table maps hashes of keys to one word of state each, without keeping
// the keys and without pointers for the collector to follow.
//
// It is open addressing in small segments. A slot belongs to one hash for as
// long as its segment lives, so whoever has found its slot works on the word by
// compare-and-swap alone. When a segment is full, one caller freezes it slot by
// slot, which sends everyone else to the shard's lock, and copies what is not
// idle into one or two new ones: growing, shrinking and forgetting touch one
// segment or two at a time. Idle words, those that mean no more than a key never
// seen, are dropped on the way.
//
// The flow of a decision: Claim finds or makes the slot, the caller decides on
// its word and swaps it, and starts again where it finds Moved.
package table

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Words with a meaning to the table. All others are the caller's.
const (
	// Fresh is the word of a key never seen.
	Fresh uint64 = 0
	// Moved says that the segment was replaced: Claim or Find again.
	Moved uint64 = math.MaxUint64
	// Elsewhere says that the state does not fit a word and is kept by the
	// caller. It is never idle.
	Elsewhere uint64 = math.MaxUint64 - 1
)

// Hash stands for a key. All its bits tell keys apart, and say where to look: it
// must be as good as random.
type Hash uint64

// What snapshots depend on: changing any of it takes a new version of their
// format.
const (
	// ShardBits is how many low bits of a hash number its shard.
	ShardBits = 6
	// Shards is how many parts a table has.
	Shards = 1 << ShardBits
	// SecretBytes is the length of a seed's secret.
	SecretBytes = 32
	// MaxKey is the longest key in bytes.
	MaxKey = 4096
)

// The sizes. A call looks through one segment at most. With the slot that counts,
// one of full size is a size class of the allocator.
const (
	minSlots     = 8
	segmentSlots = 895

	// MaxTouched bounds the slots that one call looks at, for hashes as good
	// as random.
	MaxTouched = 1024
)

// Options configure a Table.
type Options struct {
	// Idle says that a word means no more than Fresh from now on. It must stay
	// true as time goes on. It is asked for words the caller has written,
	// Elsewhere excepted.
	Idle func(word uint64, now int64) bool
	// MaxKeys bounds the slots in use; 0 is no bound, less is no room. It is dealt to the shards
	// in equal parts, which together never hold more.
	MaxKeys int
}

// Table is safe for concurrent use.
type Table struct {
	idle    func(word uint64, now int64) bool
	swept   atomic.Int64
	dropped atomic.Uint64
	touched func(*segment) // nil but in tests: told of every segment looked through
	shards  [Shards]shard
}

// New makes an empty table. It allocates as keys come.
func New(options Options) *Table {
	t := &Table{idle: options.Idle}
	t.swept.Store(math.MinInt64)
	for i := range t.shards {
		s := &t.shards[i]
		s.most = math.MaxInt64
		if options.MaxKeys != 0 {
			s.most = int64(Part(options.MaxKeys, i))
		}
		s.looked.Store(math.MinInt64)
	}
	return t
}

// Part is how many of so many keys the i-th shard may hold.
func Part(keys, i int) int {
	part := keys / Shards
	if i < keys%Shards {
		part++
	}
	return part
}

// Swept is the latest instant at which something idle was dropped. A key not
// found may have been in use before it.
func (t *Table) Swept() int64 { return t.swept.Load() }

// Dropped is how many idle words have been dropped.
func (t *Table) Dropped() uint64 { return t.dropped.Load() }

// Find is the word of a hash; nil if there is none.
func (t *Table) Find(h Hash) *atomic.Uint64 {
	h = valid(h)
	s := &t.shards[h%Shards]
	for {
		d := s.directory.Load()
		if d == nil {
			return nil
		}
		word, stale := d.segment(h).find(h)
		if !stale {
			return word
		}
		s.settle()
	}
}

// Claim is the word of a hash, Fresh if it had none. It is nil if the hash has
// none and the cap leaves no room for one, which takes no lock as a rule: idle
// words are looked for once in SweepEvery.
func (t *Table) Claim(h Hash, now int64) *atomic.Uint64 {
	h = valid(h)
	s := &t.shards[h%Shards]
	if d := s.directory.Load(); d != nil {
		// About two of three known hashes stand where the search begins.
		segment := d.segment(h)
		if slot := &segment.slots[segment.first(h)]; slot.tag.Load() == uint64(h) {
			return &slot.word
		}
	}
	return t.claim(s, h, now)
}

func (t *Table) claim(s *shard, h Hash, now int64) *atomic.Uint64 {
	for tidied := false; ; {
		d := s.directory.Load()
		if d != nil {
			word, due := d.segment(h).claim(h, s)
			if due && !tidied {
				tidied = true
				t.tidy(s, now)
				continue // the segment tidied up may be that of h
			}
			if word != nil {
				return word
			}
			if s.crowded(d, h, now) {
				return nil
			}
		}
		if !t.makeRoom(s, d, h, now) {
			return nil
		}
	}
}

// Len is how many slots are in use; some may be idle.
func (t *Table) Len() (n int) {
	for i := range t.shards {
		n += int(t.shards[i].used.Load())
	}
	return n
}

// Bytes is the memory of the slots.
func (t *Table) Bytes() (n int) {
	for i := range t.shards {
		if d := t.shards[i].directory.Load(); d != nil {
			for s := range d.all {
				n += len(s.slots) * slotBytes
			}
		}
	}
	return n
}

// All yields every hash in use and its word. What changes meanwhile may be
// yielded as before or after.
func (t *Table) All(yield func(Hash, uint64) bool) {
	for i := range t.shards {
		if !t.shards[i].each(yield) {
			return
		}
	}
}

// shard is a part of the table with a lock for changes of its directory.
type shard struct {
	directory atomic.Pointer[directory]
	mu        sync.Mutex
	next      int          // the segment to look at for idle words
	looked    atomic.Int64 // when idle words were looked for because of the cap
	_         [32]byte

	// What a new hash writes is on a cache line of its own.
	used atomic.Int64 // slots in use
	most int64
	_    [48]byte
}

// SweepEvery is how long, in ns, a shard that holds all it may waits before it
// looks for idle words again. A flood of new keys costs no more than that.
const SweepEvery = int64(time.Millisecond)

// crowded says that h is unknown, there is no room for it, and no point in
// looking for some.
func (s *shard) crowded(d *directory, h Hash, now int64) bool {
	if s.used.Load() < s.most || s.mayLook(now) {
		return false
	}
	word, stale := d.segment(h).find(h)
	return word == nil && !stale
}

func (s *shard) mayLook(now int64) bool {
	return uint64(now-s.looked.Load()) >= uint64(SweepEvery)
}

// enter counts a hash in, if there is room.
func (s *shard) enter() bool {
	if s.used.Add(1) <= s.most {
		return true
	}
	s.used.Add(-1)
	return false
}

// settle waits until nobody changes the shard.
func (s *shard) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
}

// each holds the lock, so that no slot is frozen or copied meanwhile.
func (s *shard) each(yield func(Hash, uint64) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.directory.Load()
	if d == nil {
		return true
	}
	for segment := range d.all {
		for i := 1; i < len(segment.slots); i++ {
			tag, word := segment.slots[i].tag.Load(), segment.slots[i].word.Load()
			if tag != empty && word != Fresh && !yield(Hash(tag), word) {
				return false
			}
		}
	}
	return true
}
