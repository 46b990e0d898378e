//go:build amd64 && !race

package word

// set writes a word of a held entry, which other callers may read. On amd64 a plain store is one write, and no later
// write overtakes it; an atomic one would also wait until it is in the cache.
func set(at *uint64, word uint64) { *at = word }
