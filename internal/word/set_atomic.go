//go:build !amd64 || race

package word

import "sync/atomic"

// set writes a word of a held entry, which other callers may read.
func set(at *uint64, word uint64) { atomic.StoreUint64(at, word) }
