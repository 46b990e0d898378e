package word

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// glimpse is the two words at the start of an entry, read one after the other without a hold.
type glimpse struct {
	Words
	loans uint64 // of the shard so far, read first
}

func (l *Limit) glimpse(e table.Entry, h table.Hash) glimpse {
	loans := l.in.loans[h%table.Shards].Load()
	first := atomic.LoadUint64(&e.Words[0])
	return glimpse{Words{first, atomic.LoadUint64(&e.Words[1])}, loans}
}

// takePair decides on a glimpse. A refusal writes nothing, so the cores do not pass the memory of an exhausted key to
// each other. An admission holds the entry only to write the words. The result is moved if another caller holds the
// entry or has changed it.
//
// The words of a refusal were there at one instant: only a loan brings back an earlier time, so the first word stood
// between its two reads, and the second was read meanwhile. Words of two instants also give an answer, which takePair
// drops.
func (l *Limit) takePair(e table.Entry, seen glimpse, h table.Hash, now, n int64, a *algorithm.Answer) result {
	words := (*[2]uint64)(e.Words)
	if seen.First >= table.Held || seen.First == table.Fresh && l.mayBeEvicted(now) {
		return moved
	}
	var next Words
	var ok bool
	if l.bucket != nil { // decidePair, with one call less
		next.First, next.Second, ok = l.bucket.DecidePair(seen.First, seen.Second, uint64(l.number), l.base, now, n, a)
	} else {
		next.First, next.Second, ok = l.decidePair(seen.First, seen.Second, uint64(l.number), now, n, a)
	}
	switch {
	case !ok:
	case !a.Changed:
		if atomic.LoadUint64(&words[0]) == seen.First && l.in.loans[h%table.Shards].Load() == seen.loans {
			return decided
		}
	case atomic.CompareAndSwapUint64(&words[0], seen.First, table.Held):
		if atomic.LoadUint64(&words[1]) == seen.Second {
			table.Write(&words[1], next.Second)
			table.Write(&words[0], next.First)
			return decided
		}
		table.Write(&words[0], seen.First)
	}
	*a = algorithm.Answer{}
	return moved
}
