package table

import (
	"sync"
	"sync/atomic"
	"time"
)

// shard is a part of the table, with a lock for changes of its directory.
type shard struct {
	directory atomic.Pointer[directory]
	mu        sync.Mutex
	next      int          // the next segment to search for idle words
	sweptAt   atomic.Int64 // when the shard last searched for idle words at the bound
	_         [32]byte

	// Inserting a hash writes here, so these fields have a cache line of their own.
	used    atomic.Int64 // entries in use
	maxUsed int64
	_       [48]byte
}

// SweepEvery is the pause, in ns, between two searches for idle words in a shard at its bound. It bounds the cost of
// a flood of new keys.
const SweepEvery = int64(time.Millisecond)

func (s *shard) maySweep(now int64) bool {
	return uint64(now-s.sweptAt.Load()) >= uint64(SweepEvery)
}

// countNew counts a new hash and reports whether there was room for it.
func (s *shard) countNew() bool {
	if s.used.Add(1) <= s.maxUsed {
		return true
	}
	s.used.Add(-1)
	return false
}

// settle waits until no caller is changing the shard.
func (s *shard) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
}
