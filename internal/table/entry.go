package table

import (
	"math"
	"runtime"
	"sync/atomic"
)

// Reserved values of the first word of an entry. All other values belong to the caller.
const (
	// Fresh is every word of a new key.
	Fresh uint64 = 0
	// Moved means that the segment was replaced: call Claim or Find again.
	Moved uint64 = math.MaxUint64
	// Elsewhere means that the caller keeps the state, because it does not fit in its words. An entry with such a word
	// is never idle.
	Elsewhere uint64 = math.MaxUint64 - 1
	// Held means that one caller is changing the words.
	Held uint64 = math.MaxUint64 - 2
)

// Entry is the words of one hash. Its first word is read and written by atomic operations only. An entry of one word
// changes by compare-and-swap, or by a caller that holds it together with others. Only the caller that holds a wider entry
// writes its other words: that has replaced the first word by Held, or by Elsewhere, which only the caller's own lock
// protects.
type Entry struct {
	Words  []uint64 // none if there is no entry
	Layout uint8
}

// None reports whether there is no entry.
func (e Entry) None() bool { return len(e.Words) == 0 }

// First returns the first word.
func (e Entry) First() uint64 { return atomic.LoadUint64(&e.Words[0]) }

// Swap replaces the first word if it is old.
func (e Entry) Swap(old, next uint64) bool {
	return atomic.CompareAndSwapUint64(&e.Words[0], old, next)
}

// Hold holds the entry and returns its first word, for Release. If the first word is Moved, or is Elsewhere and the
// caller does not have the lock of such states, it holds nothing and returns that word.
func (e Entry) Hold(withElsewhere bool) (first uint64, held bool) {
	return HoldWord(&e.Words[0], withElsewhere)
}

// HoldWord holds the words behind a first word that is in no table, like Hold.
func HoldWord(at *uint64, withElsewhere bool) (first uint64, held bool) {
	for spins := 0; ; spins++ {
		first = atomic.LoadUint64(at)
		switch {
		case first == Held:
			pause(spins)
		case first == Moved || first == Elsewhere && !withElsewhere:
			return first, false
		case atomic.CompareAndSwapUint64(at, first, Held):
			return first, true
		}
	}
}

// Release ends a hold with the next first word.
func (e Entry) Release(first uint64) { atomic.StoreUint64(&e.Words[0], first) }

// pause waits a moment for a caller that holds an entry, which takes some ten nanoseconds unless its thread is
// suspended.
func pause(spins int) {
	if spins >= 16 {
		runtime.Gosched()
	}
}

// freeze makes the entry Moved and returns its first word. The other words no longer change.
func (e Entry) freeze() (first uint64) {
	for spins := 0; ; spins++ {
		first = e.First()
		if first == Held {
			pause(spins)
		} else if e.Swap(first, Moved) {
			return first
		}
	}
}

// Layout says what the words of an entry mean. A table has several layouts during its life; each segment has the one
// that was the newest when the segment was made.
type Layout interface {
	// Width returns the number of words of an entry, at most MaxWidth.
	Width() int
	// Idle reports whether the first word and the rest mean the same as those of a new key from now on. Once true, it
	// must stay true. The table calls it unless the first word is Elsewhere or all words are Fresh.
	Idle(first uint64, rest []uint64, now int64) bool
	// Convert writes the words of an entry of an earlier layout of the same table as words of this one.
	Convert(from Layout, first uint64, rest, into []uint64)
}

// MaxWidth is the largest number of words of an entry.
const MaxWidth = 8

// numbered is a layout and its number in its table.
type numbered struct {
	Layout
	number uint8
}

func (l numbered) stride() int { return 1 + l.Width() }

// segmentRoom returns the number of entries for hashes in a segment of full size. Such a segment fills a size class
// of the allocator, or at most 32 KiB.
func (l numbered) segmentRoom() int { return min(segmentSlots, 4096/l.stride()-1) }
