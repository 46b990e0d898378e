//go:build !amd64 || race

package table

import "sync/atomic"

// Write writes a word of an entry that the caller holds. Other callers may read it meanwhile. The first word is written
// last, which ends the hold.
func Write(at *uint64, word uint64) { atomic.StoreUint64(at, word) }
